// What a waiting reader is told.
package dev.comeback.demo

import java.io.PrintStream
import java.util.concurrent.TimeUnit

/** Says on stderr how far the rides are: on a terminal in one line that is written over, else in a plain line now and then. */
internal class Progress(
    private val err: PrintStream,
    private val terminal: Terminal,
    private val rides: List<SideBySide>,
    private val ride: Ride,
    private val startedAt: Long,
) : AutoCloseable {
    private val thread =
        Thread(::report, "progress").apply {
            isDaemon = true
            start()
        }

    override fun close() {
        thread.interrupt()
        thread.join()
        if (terminal.progressRewrites) err.print("\r\u001b[K")
        err.flush()
    }

    private fun report() {
        val every = if (terminal.progressRewrites) REWRITE_MILLIS else PLAIN_MILLIS
        try {
            while (true) {
                Thread.sleep(every)
                val line = progressLine(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startedAt), ride, rides.map { it.progress() })
                if (terminal.progressRewrites) err.print("\r\u001b[K${line.take(terminal.width - 1)}") else err.println(line)
                err.flush()
            }
        } catch (_: InterruptedException) {
            // The rides are over.
        }
    }

    private companion object {
        const val REWRITE_MILLIS = 200L
        const val PLAIN_MILLIS = 5000L
    }
}

/** One line about [rides] that run at the same time; with a single one it tells the state of the link too. */
internal fun progressLine(
    millis: Long,
    ride: Ride,
    rides: List<List<LaneProgress>>,
): String {
    val of = ride.seconds
    val second = "second ${millis / Ride.SECOND} of $of"
    val where =
        when {
            millis >= of * Ride.SECOND -> "the ride is over, last calls"
            rides.size > 1 -> "$second, ${rides.size} rides"
            ride.aliveFrom(millis) == millis -> "$second, signal"
            else -> "$second, no signal"
        }
    val clients =
        listOf(HAND_WRITTEN, COMEBACK).mapIndexed { index, name ->
            val lanes = rides.map { it[index] }
            "$name ${lanes.sumOf { it.served }}/${lanes.sumOf { it.gaveUp }}/${lanes.sumOf { it.underWay }}"
        }
    return "$where | served/gave up/under way: ${clients.joinToString(", ")}"
}
