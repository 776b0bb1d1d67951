// Every cell is played against a server that counts.
//
//     mvn -pl comeback-matrix -am test -Dcomeback.matrix.share=1                             all of them; else a tenth, or COMEBACK_MATRIX_SHARE
//     mvn -pl comeback-matrix -am test -Dcomeback.matrix.cells='retry/factory/.*/post/.*'    of the cells whose whole name this matches
package dev.comeback.matrix

import java.io.File
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
        val share = SHARE
        val seed = System.getProperty("comeback.matrix.seed")?.toLong() ?: FIXED_SEED
        val random = Random(seed)
        // Shuffled, so that those that wait for a late answer do so beside others.
        val cells = all.shuffled(random).let { it.take(maxOf(1, (it.size * share).toInt())) }

        val began = System.nanoTime()
        // Calls that may be any block's are told to every block, so they have the process to themselves.
        val groups = cells.partition { it.made != Made.UNNOTED }.toList()
        val violations = groups.flatMap { group -> playAll(group) { cell, label -> play(cell, label) } }.sortedBy { it.cell.name }
        val seconds = (System.nanoTime() - began) / 1e9

        println("${cells.size} of ${all.size} cells in ${"%.1f".format(seconds)} s, seed $seed")
        for (driver in Driver.entries) println("  $driver: ${cells.count { it.driver == driver }}")
        for (made in Made.entries) println("  $made: ${cells.count { it.made == made }}")
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

    private companion object {
        /** Always the same part, so that a failure can be repeated. */
        const val FIXED_SEED = 1L

        /** So many are told one by one. */
        const val FEW = 100
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
