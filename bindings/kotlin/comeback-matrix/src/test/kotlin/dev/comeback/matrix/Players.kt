// Plays many cells side by side, and judges each once its server has settled.
package dev.comeback.matrix

import kotlinx.coroutines.runBlocking
import java.util.concurrent.Callable
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger

/** All violations of [cells], each played by [play] under a label of its own. */
internal fun playAll(
    cells: List<Cell>,
    play: suspend (Cell, label: String) -> Playing,
): List<Violation> {
    val run = RUNS.incrementAndGet()
    val threads = System.getProperty("comeback.matrix.threads")?.toInt() ?: THREADS
    val players = Executors.newFixedThreadPool(threads) { task -> Thread(task, "player").apply { isDaemon = true } }
    val over = ConcurrentLinkedQueue<Playing>()
    val violations = ConcurrentLinkedQueue<Violation>()
    val tasks =
        cells.mapIndexed { index, cell ->
            Callable {
                over += runBlocking { play(cell, "$run/$index") }
                // What comes after the end counts too.
                while (true) {
                    val oldest = over.peek() ?: break
                    if (System.nanoTime() - oldest.ended < SETTLED_NANOS) break
                    if (over.remove(oldest)) violations += oldest.judge()
                }
            }
        }
    players.invokeAll(tasks).forEach { it.get() }
    Thread.sleep(SETTLED_NANOS / 1_000_000)
    over.forEach { violations += it.judge() }
    players.shutdown()
    return violations.toList()
}

/** How much of the whole is played unless more is asked for. */
internal val SHARE: Double
    get() = (System.getProperty("comeback.matrix.share") ?: System.getenv("COMEBACK_MATRIX_SHARE"))?.toDouble() ?: 0.1

/** Of this process. A call that was given up may tell its end when another run has begun, and must not be taken for that one's. */
private val RUNS = AtomicInteger()

private const val THREADS = 24
private const val SETTLED_NANOS = 400_000_000L
