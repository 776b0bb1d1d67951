// The model of the link, of the phone's system above it, and of one exchange over it.
package dev.comeback.arena

import kotlinx.coroutines.delay
import java.io.IOException
import java.net.NoRouteToHostException
import java.net.SocketTimeoutException

/** What is modelled, in milliseconds; printed with the results. */
internal data class LinkModel(
    /** The system hears of a loss so late; of a loss that is over by then it never hears. */
    val lossLate: Long = 5_000,
    /** Of the link's return so late. */
    val returnLate: Long = 500,
    /** From the first segment that got through until the answer is there; none of it may meet a dead second. */
    val exchange: Long = 300,
    /** A client gives up connecting after this. */
    val connectTimeout: Long = 10_000,
    /** And waiting for the answer to a request that was lost after this. */
    val readTimeout: Long = 10_000,
) {
    companion object {
        /** When a connection attempt sends its SYN again, from its start. */
        val SYN_RETRANSMITS = longArrayOf(0, 1_000, 3_000, 7_000)
    }
}

/**
 * The same for all clients. An attempt that begins while the system says offline fails at once. Else its SYN goes out at 0, 1, 3 and 7 s until one
 * meets a live second; the exchange follows, and a dead second in it loses the answer. Names are known, connections are new.
 */
internal class Link(
    val trace: Trace,
    val model: LinkModel,
) {
    /** When the system says that there is no network. */
    val knownOffline: List<Span> =
        buildList {
            var since: Long? = null
            trace.outages.forEachIndexed { index, outage ->
                if (since == null && outage.millis > model.lossLate) since = outage.from + model.lossLate
                val lostAgain = trace.outages.getOrNull(index + 1)?.from ?: Long.MAX_VALUE
                val told = outage.until + model.returnLate
                since?.takeIf { told < lostAgain }?.let {
                    add(Span(it, told))
                    since = null
                }
            }
        }

    /** What becomes of an attempt that begins at [start]. */
    fun attemptAt(start: Long): Fate {
        if (isKnownOffline(start)) return Fate(start, Ending.UNREACHABLE)
        for (after in LinkModel.SYN_RETRANSMITS) {
            val connected = start + after
            if (!trace.isAlive(connected)) continue
            return if (gets(connected)) {
                Fate(connected + model.exchange, Ending.ANSWERED)
            } else {
                Fate(connected + model.readTimeout, Ending.READ_TIMEOUT)
            }
        }
        return Fate(start + model.connectTimeout, Ending.CONNECT_TIMEOUT)
    }

    fun isKnownOffline(millis: Long): Boolean = offlineUntil(millis) != null

    /** Until when the system says offline; null: it does not. */
    fun offlineUntil(millis: Long): Long? {
        val index =
            knownOffline.binarySearch {
                if (it.until <= millis) {
                    -1
                } else if (it.from > millis) {
                    1
                } else {
                    0
                }
            }
        return knownOffline.getOrNull(index)?.until
    }

    /** The earliest instant from [start] on at which an exchange meets no dead second. */
    fun firstChance(start: Long): Long {
        var at = start
        while (!gets(at)) at = if (trace.isAlive(at)) at + 1 else checkNotNull(trace.outageAt(at)).until
        return at
    }

    /** The same for whoever has a phone's system between: while it says offline, nothing goes out. */
    fun firstOpenChance(start: Long): Long {
        var at = firstChance(start)
        while (true) at = firstChance(offlineUntil(at) ?: return at)
    }

    /** Whether an exchange that begins now gets its answer. */
    private fun gets(start: Long): Boolean {
        var at = start
        while (at < start + model.exchange) {
            if (!trace.isAlive(at)) return false
            at = (at / SECOND + 1) * SECOND
        }
        return true
    }
}

internal class Fate(
    val at: Long,
    val ending: Ending,
)

internal enum class Ending {
    ANSWERED,
    UNREACHABLE,
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    ;

    /** As the platform says it. */
    fun exception(): IOException? =
        when (this) {
            ANSWERED -> null
            UNREACHABLE -> NoRouteToHostException("Network is unreachable")
            CONNECT_TIMEOUT -> SocketTimeoutException("connect timed out")
            READ_TIMEOUT -> SocketTimeoutException("Read timed out")
        }
}

/** One tap of the user, and what a client made of it. */
internal class Tap(
    val number: Int,
    val at: Long,
) {
    var sends = 0
        private set

    /** Sends begun on a dead link. */
    var deadSends = 0
        private set
    var endedAt = Long.MAX_VALUE
        private set
    var succeeded = false
        private set

    /** One attempt; returns when it is answered. */
    suspend fun attempt(
        link: Link,
        now: () -> Long,
    ) {
        val start = now()
        sends++
        if (!link.trace.isAlive(start)) deadSends++
        val fate = link.attemptAt(start)
        delay(fate.at - start)
        fate.ending.exception()?.let { throw it }
    }

    fun ended(
        at: Long,
        success: Boolean,
    ) {
        endedAt = at
        succeeded = success
    }
}
