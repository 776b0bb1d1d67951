// Where an app hears what becomes of its calls.
package dev.comeback

/**
 * Hears every [RetryEvent] of one [Comeback]. It is called on the thread that drives the call ([RetryEvent.Unavailable]: on any thread). Several threads
 * may call it at once, but never with events of the same call. The call waits for it, so it must be quick; the waits of all calls of the OkHttp call
 * factory end on one thread, so there the other calls wait for it too. An exception that it throws is ignored.
 */
public fun interface RetryListener {
    /** The next event of a call. */
    public fun onEvent(event: RetryEvent)
}
