// A network arrives in several callbacks, one after the other. To the hub it is one event, so that it is one edge.
package dev.comeback.android

import android.os.Handler
import dev.comeback.ManualConnectivity

/**
 * From API 26 on the system promises that the network's capabilities follow `onAvailable` at once, from API 28 on in the same message to the handler. So
 * the hub is told of the arrival when the message with the capabilities is over. All members are for the handler's thread.
 *
 * @param promisesCapabilities whether capabilities are sure to follow; if not, nothing is waited for
 */
internal class Arrivals(
    private val hub: ManualConnectivity,
    private val handler: Handler,
    private val promisesCapabilities: Boolean,
) {
    private class Arriving(
        val handle: Long,
    ) {
        var blocked = false
        var suspended = false
        var validated = false
    }

    private var arriving: Arriving? = null
    private val complete = Runnable { tell() }

    fun available(handle: Long) {
        tell()
        arriving = Arriving(handle)
        handler.postDelayed(complete, if (promisesCapabilities) BROKEN_PROMISE_MILLIS else 0)
    }

    fun capabilities(
        handle: Long,
        suspended: Boolean,
        validated: Boolean,
    ) {
        val arriving = arrivingAs(handle) ?: return hub.capabilities(handle, suspended, validated)
        arriving.suspended = suspended
        arriving.validated = validated
        handler.removeCallbacks(complete)
        handler.post(complete)
    }

    fun blocked(
        handle: Long,
        blocked: Boolean,
    ) {
        val arriving = arrivingAs(handle) ?: return hub.blocked(handle, blocked)
        arriving.blocked = blocked
    }

    fun lost(handle: Long) {
        tell()
        hub.lost(handle)
    }

    fun stop() {
        handler.removeCallbacks(complete)
        arriving = null
    }

    /** Null if another network is meant; the one that was arriving has arrived then. */
    private fun arrivingAs(handle: Long): Arriving? {
        val candidate = arriving
        if (candidate?.handle == handle) return candidate
        tell()
        return null
    }

    private fun tell() {
        handler.removeCallbacks(complete)
        val arrived = arriving ?: return
        arriving = null
        hub.available(arrived.handle, arrived.blocked, arrived.suspended, arrived.validated)
    }

    private companion object {
        /** After this time the hub is told of a network even if its capabilities never came. */
        const val BROKEN_PROMISE_MILLIS = 100L
    }
}
