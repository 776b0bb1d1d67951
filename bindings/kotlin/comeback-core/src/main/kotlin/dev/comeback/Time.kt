// The clocks and the two ways to wait, injected so that no test waits.
package dev.comeback

/**
 * The time a [Comeback] lives in. All members may be used from any thread.
 *
 * @suppress
 */
@InternalComebackApi
public interface Time {
    /** Nanoseconds of a clock that goes on while the device sleeps; its zero means nothing. */
    public fun nanos(): Long

    /** Milliseconds since 1970 by the wall clock, or null if there is none. Only HTTP dates are measured by it. */
    public fun wallMillis(): Long?

    /**
     * Blocks until [nanos] has reached [until], or until [wakeup] was woken, be it before. True if it was woken; that wake is then used up.
     *
     * @throws InterruptedException if the thread is interrupted, be it before
     */
    @Throws(InterruptedException::class)
    public fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean

    /**
     * Runs [action] once [nanos] has reached [until], at once if it has. All actions share a thread of this time, and none runs on the thread that
     * calls this: so an action must be quick, and must not block. What it throws ends there. Closing what this answers takes the action back, unless
     * it has begun.
     */
    public fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription
}
