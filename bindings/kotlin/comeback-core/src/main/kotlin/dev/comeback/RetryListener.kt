// Where an app hears what becomes of its calls.
package dev.comeback

/**
 * Hears every [RetryEvent] of one [Comeback]. It is called on the thread that drives the call ([RetryEvent.Unavailable]: on any thread), so many
 * threads may be in it at once, though never with events of the same call, and the call waits for it: be quick. OkHttp calls of the call factory end
 * their waits on one thread, so there the others wait for it too. What it throws is contained.
 */
public fun interface RetryListener {
    /** The next event of a call. */
    public fun onEvent(event: RetryEvent)
}
