// Every cell is played against a server that counts.
//
//     mvn -pl comeback-matrix -am test -Dcomeback.matrix.share=1                             all of them; else a tenth, or COMEBACK_MATRIX_SHARE
//     mvn -pl comeback-matrix -am test -Dcomeback.matrix.cells='retry/factory/.*/post/.*'    of the cells whose whole name this matches
package dev.comeback.matrix

import kotlinx.coroutines.runBlocking
import java.io.File
import java.util.concurrent.Callable
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.Executors
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

class MatrixTest {
    @Test
    fun `whatever Comeback is composed with, the server counts no request that must not be`() {
        val wanted = System.getProperty("comeback.matrix.cells")?.toRegex()
        val all = allCells().filter { wanted == null || wanted.matches(it.name) }
        assertTrue(all.isNotEmpty(), "no cell has such a name")
        val share = (System.getProperty("comeback.matrix.share") ?: System.getenv("COMEBACK_MATRIX_SHARE"))?.toDouble() ?: A_FEW
        val seed = System.getProperty("comeback.matrix.seed")?.toLong() ?: FIXED_SEED
        val random = Random(seed)
        // Shuffled, so that those that wait for a late answer do so beside others.
        val cells = all.shuffled(random).let { it.take(maxOf(1, (it.size * share).toInt())) }

        val began = System.nanoTime()
        val violations = playAll(cells).sortedBy { it.cell.name }
        val seconds = (System.nanoTime() - began) / 1e9

        println("${cells.size} of ${all.size} cells in ${"%.1f".format(seconds)} s, seed $seed")
        for (driver in Driver.entries) println("  $driver: ${cells.count { it.driver == driver }}")
        Driver.entries.forEach { driver ->
            Inner.entries.filter { impossible(driver, it) != null }.groupBy { impossible(driver, it) }.forEach { (reason, inners) ->
                println("  not there: $driver with ${inners.joinToString { it.name }}: $reason")
            }
        }
        print(table(violations))
        if (cells.size <= FEW) violations.forEach { println("${it.cell}: ${it.rule}: ${it.detail}; ${it.played}") }
        System.getProperty("comeback.matrix.list")?.let { list ->
            File(list).writeText(violations.joinToString("") { "${it.cell}: ${it.rule}: ${it.detail}; ${it.played}\n" })
        }
        assertEquals(0, violations.size, "violations")
    }

    private fun playAll(cells: List<Cell>): List<Violation> {
        val threads = System.getProperty("comeback.matrix.threads")?.toInt() ?: THREADS
        val players = Executors.newFixedThreadPool(threads) { task -> Thread(task, "player").apply { isDaemon = true } }
        val over = ConcurrentLinkedQueue<Playing>()
        val violations = ConcurrentLinkedQueue<Violation>()
        val tasks =
            cells.mapIndexed { index, cell ->
                Callable {
                    over += runBlocking { play(cell, "$index") }
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

    private companion object {
        const val THREADS = 24

        /** How much of the whole is played unless more is asked for: always the same part, so that a failure can be repeated. */
        const val A_FEW = 0.1
        const val FIXED_SEED = 1L

        /** So many are told one by one. */
        const val FEW = 100
        const val SETTLED_NANOS = 400_000_000L
    }
}

/** By driver, what is inside, and fault: how many cells broke which rule, and one of them. */
private fun table(violations: List<Violation>): String {
    if (violations.isEmpty()) return "no violation\n"
    val text = StringBuilder()
    text.append("${violations.map { it.cell }.distinct().size} cells are violated\n")
    for (rule in Rule.entries) text.append("  ${rule.name} ${violations.count { it.rule == rule }}: ${rule.says}\n")
    violations.groupBy { Triple(it.cell.driver, it.cell.inner, it.cell.fault) }.forEach { (group, its) ->
        val counts =
            its
                .groupingBy { it.rule }
                .eachCount()
                .entries
                .sortedBy { it.key }
                .joinToString { "${it.key} ${it.value}" }
        val worst = its.minBy { it.rule }
        text.append("${group.first} ${group.second} ${group.third}: $counts; ${worst.cell}: ${worst.rule} ${worst.detail}\n")
    }
    return text.toString()
}
