// Where an app hears what becomes of its calls.
package dev.comeback

/**
 * Hears every [RetryEvent] of one [Comeback]. It is called on the thread that drives the call ([RetryEvent.Unavailable]: on any thread), and that call
 * waits for it, so it must be quick. One that is not gets a [Comeback.Builder.listenerExecutor]. Several threads may call it at once, but never with events of
 * the same call. An exception that it throws is ignored.
 */
public fun interface RetryListener {
    /** The next event of a call. */
    public fun onEvent(event: RetryEvent)
}
