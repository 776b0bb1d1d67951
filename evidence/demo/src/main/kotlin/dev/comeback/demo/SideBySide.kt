// Runs both clients along one ride.
package dev.comeback.demo

import dev.comeback.testing.FakeLink
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong
import kotlin.concurrent.thread

/**
 * One ride, in real time: two clients, each with a server, a link and a phone of its own. Both links die and return at the same
 * instants, and both phones notice it at the same instants; each tap starts a thread at either client at the same instant, and nothing else
 * happens.
 */
internal class SideBySide(
    private val seed: Long,
    private val ride: Ride,
    private val taps: List<Tap>,
    private val lossLateMillis: Int,
    private val returnLateMillis: Int,
    client: Client = Client.OKHTTP,
) : AutoCloseable {
    private val phone = PhoneKnowledge(::now)
    private val lanes =
        listOf(
            Lane { link -> OrderClient.handWritten(link) },
            Lane { link -> comebackClient(client, link, lossLateMillis, returnLateMillis, phone) },
        )
    private var startedAt = 0L
    private val threads = mutableListOf<Thread>()
    private val slippedMillis = AtomicLong()

    /** The latest that a cut, a return or a tap came after its time; a busy machine shows here. */
    val slip: Long get() = slippedMillis.get()

    /** Loads classes, connects, and makes sure that both clients work, before anything is counted. */
    fun warmUp() {
        OrderServer { 0 }.use { server ->
            for (lane in lanes) {
                val record = TapRecord(Tap(0, 0, 0)) { 0 }
                lane.client.order(server.port, record)
                check(record.succeeded == true) { "the ${lane.client.name} client cannot order on a link that is alive" }
            }
        }
    }

    /** Begins the ride at [nanoTime], which must still be to come. */
    fun start(nanoTime: Long) {
        startedAt = nanoTime
        threads += rideThread("link") { followTheRide() }
        for (lane in lanes) {
            for (record in lane.records) {
                threads +=
                    rideThread("tap ${record.tap.id}") {
                        waitUntil(record.tap.atMillis)
                        lane.client.order(lane.link.port, record)
                    }
            }
        }
    }

    /** Waits until the ride is over and every tap has ended. */
    fun finish(): RideRun {
        threads.forEach { it.join() }
        val (handWritten, comeback) =
            lanes.map { lane ->
                ClientRun(lane.client.name, lane.client.setUp, ride, lane.records.map { it.story() }, lane.server.counts())
            }
        return RideRun(seed, ride, handWritten, comeback, phone.offline())
    }

    fun progress(): List<LaneProgress> =
        lanes.map { lane ->
            val begun = lane.records.filter { it.tap.atMillis <= now() }
            LaneProgress(begun.count { it.succeeded == true }, begun.count { it.succeeded == false }, begun.count { it.succeeded == null })
        }

    override fun close() = lanes.forEach { it.close() }

    private fun now() = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedAt)

    private fun followTheRide() {
        for (outage in ride.outages) {
            waitUntil(outage.from)
            lanes.forEach { it.link.cut(toldAfterMillis = lossLateMillis.toLong()) }
            waitUntil(outage.until)
            lanes.forEach { it.link.restore(toldAfterMillis = returnLateMillis.toLong()) }
        }
    }

    private fun waitUntil(millis: Long) {
        // One reading per turn: between two the time may come, and a negative sleep is an error.
        var now = now()
        while (now < millis) {
            Thread.sleep(millis - now)
            now = now()
        }
        slippedMillis.accumulateAndGet(now - millis, ::maxOf)
    }

    private fun rideThread(
        name: String,
        task: () -> Unit,
    ) = thread(isDaemon = true, name = name, block = task)

    private inner class Lane(
        client: (FakeLink) -> OrderClient,
    ) : AutoCloseable {
        private val serverMillis = taps.associate { it.id to it.serverMillis }
        val server = OrderServer { tap -> serverMillis[tap] ?: 0 }
        val link = FakeLink.to(server.port)
        val client = client(link)
        val records = taps.map { TapRecord(it, ::now) }

        override fun close() {
            client.close()
            link.close()
            server.close()
        }
    }
}

/** How far one client is. */
internal data class LaneProgress(
    val served: Int,
    val gaveUp: Int,
    val underWay: Int,
)
