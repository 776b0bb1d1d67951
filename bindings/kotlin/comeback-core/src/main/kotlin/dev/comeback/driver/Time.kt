// The clocks and the two ways to wait, injected so that no test waits.
package dev.comeback.driver

import dev.comeback.Comeback
import dev.comeback.InternalComebackApi
import dev.comeback.Subscription

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
     * Blocks until [nanos] has reached [until], or until [wakeup] was woken, even before this call. True if it was woken; that wake is then used up.
     *
     * @throws InterruptedException if the thread is interrupted, even before this call
     */
    @Throws(InterruptedException::class)
    public fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean

    /**
     * Runs [action] when [nanos] has reached [until], at once if it already has. It runs on a thread that is not the calling one, and that few other actions
     * share: two may run at the same time, and one that comes upon an app's code that blocks does not hold up the others, unless many do so at once.
     * What it throws is ignored. Closing the returned subscription cancels the action, unless it has begun.
     */
    public fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription
}
