// A table for people: first column to the left, the others to the right.
package dev.comeback.bench

internal class Table(
    private vararg val head: String,
) {
    private val rows = ArrayList<List<String>>()

    fun row(vararg cells: String) {
        require(cells.size == head.size) { "a row has ${head.size} cells: ${cells.toList()}" }
        rows += cells.toList()
    }

    fun print() {
        val lines = listOf(head.toList()) + rows
        val widths = head.indices.map { column -> lines.maxOf { it[column].length } }
        for (line in lines) {
            println(
                line.withIndex().joinToString("  ") { (column, cell) ->
                    if (column == 0) cell.padEnd(widths[0]) else cell.padStart(widths[column])
                },
            )
        }
    }
}

internal fun micros(nanos: Long): String = "%.1f".format(nanos / 1e3)

internal fun millis(nanos: Long): String = "%.2f".format(nanos / 1e6)

internal fun grouped(number: Long): String = "%,d".format(number)

/** The value that [share] of these do not exceed; 0.5 is the median. */
internal fun LongArray.quantile(share: Double): Long {
    val sorted = sortedArray()
    return sorted[((sorted.size - 1) * share).toInt()]
}
