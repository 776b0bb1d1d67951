// Keeps sleeping calls from holding every slot a dispatcher has for a host.
package dev.comeback.okhttp.internal

import okhttp3.Call
import okhttp3.Dispatcher
import okhttp3.internal.connection.RealCall
import java.io.Closeable
import java.util.WeakHashMap

/**
 * Counts, for each dispatcher and host, the enqueued calls that sleep after a status: at most one fewer than there are slots. A call that was
 * executed on its caller's own thread holds no slot.
 */
internal object WaitingSlots {
    /** For a call that holds no slot, or that does not sleep. */
    val NONE = Closeable {}

    private val dispatchers = WeakHashMap<Dispatcher, Sleepers>()

    /** A slot to sleep in, to be closed when the sleep is over; null if this would be the last one left. */
    fun take(call: Call): Closeable? {
        val dispatcher = dispatcherOf(call) ?: return NONE
        val host = call.request().url.host
        val perHost = dispatcher.maxRequestsPerHost
        val overall = dispatcher.maxRequests
        synchronized(dispatchers) {
            val sleepers = dispatchers.getOrPut(dispatcher) { Sleepers() }
            val here = sleepers.byHost[host] ?: 0
            if (here + 1 >= perHost || sleepers.total + 1 >= overall) return null
            sleepers.byHost[host] = here + 1
            sleepers.total++
            return Closeable { giveBack(sleepers, host) }
        }
    }

    private class Sleepers {
        val byHost = HashMap<String, Int>()
        var total = 0
    }

    private fun giveBack(
        sleepers: Sleepers,
        host: String,
    ) {
        synchronized(dispatchers) {
            sleepers.total--
            val left = sleepers.byHost.getValue(host) - 1
            if (left == 0) sleepers.byHost.remove(host) else sleepers.byHost[host] = left
        }
    }
}

/** The dispatcher whose slot [call] holds, or null if it holds none. Only the name of an enqueued call's thread shows this. */
private fun dispatcherOf(call: Call): Dispatcher? {
    val isEnqueued = Thread.currentThread().name == "OkHttp ${call.request().url.redact()}"
    return if (isEnqueued) (call as? RealCall)?.client?.dispatcher else null
}
