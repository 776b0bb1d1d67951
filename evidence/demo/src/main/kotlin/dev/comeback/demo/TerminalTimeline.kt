// The ride as characters.
package dev.comeback.demo

/**
 * One client's ride, drawn with characters: a column is a slice of time, the shaded ones had no signal; each tap is a line
 * from the tap to its end, and taps share a row when they do not overlap.
 */
internal class TerminalTimeline(
    private val run: RideRun,
    private val width: Int,
    private val paint: Paint,
) {
    private val columns = width - MARGIN.length
    private val columnMillis = maxOf(MIN_COLUMN_MILLIS, (run.endMillis + columns - 1) / columns)
    private val usedColumns = ((run.endMillis + columnMillis - 1) / columnMillis).toInt()
    private val dead =
        BooleanArray(usedColumns) { column ->
            val middle = column * columnMillis + columnMillis / 2
            run.ride.outages.any { middle >= it.from && middle < it.until }
        }

    fun lines(client: ClientRun): List<String> =
        buildList {
            add(MARGIN + axis())
            if (client === run.comeback && run.knownOffline.isNotEmpty()) add(MARGIN + knowledge())
            for (row in client.rows(gapMillis = 2 * columnMillis)) add(MARGIN + row(client, row))
        }

    private fun axis(): String {
        val step = AXIS_STEPS.first { it * Ride.SECOND / columnMillis >= AXIS_MIN_COLUMNS }
        val line = CharArray(usedColumns) { ' ' }
        for (second in 0..(run.endMillis / Ride.SECOND).toInt() step step) {
            val label = if (second == 0) "0s" else second.toString()
            val at = column(second * Ride.SECOND)
            if (at + label.length <= usedColumns) label.forEachIndexed { index, char -> line[at + index] = char }
        }
        return line.indices.joinToString("") { cell(Mark(line[it], Paint.GREY), it) }.trimEnd()
    }

    private fun knowledge(): String {
        val marks = Array(usedColumns) { NOTHING }
        for (known in run.knownOffline) for (at in column(known.from)..column(known.until)) marks[at] = KNOWN
        return marks.indices.joinToString("") { cell(marks[it], it) }.trimEnd()
    }

    private fun row(
        client: ClientRun,
        stories: List<TapStory>,
    ): String {
        val marks = arrayOfNulls<Mark>(usedColumns)
        for (story in stories) {
            val end = column(story.endedAt)
            for (at in column(story.tap.atMillis)..end) marks[at] = WAITING
            for (attempt in story.attempts) {
                if (attempt.until - attempt.from >= columnMillis) {
                    for (at in column(attempt.from)..column(attempt.until)) marks[at] = IN_FLIGHT
                }
                if (!attempt.answered) marks[column(attempt.until)] = FAILED
            }
            // A wake is often answered within its own column; one to the left it stays visible.
            for (wake in story.wakes) {
                marks[if (column(wake) == end && end > 0 && marks[end - 1] == WAITING) end - 1 else column(wake)] =
                    WOKEN
            }
            marks[end] = ending(client, story)
        }
        return marks.indices.joinToString("") { cell(marks[it] ?: NOTHING, it) }.trimEnd()
    }

    private fun ending(
        client: ClientRun,
        story: TapStory,
    ) = when (client.endingOf(story)) {
        Ending.SERVED -> SERVED
        Ending.ORDERED_TWICE -> Mark(minOf(client.ordersOf(story), 9).digitToChar(), Paint.PURPLE)
        Ending.GAVE_UP -> GAVE_UP
        Ending.GAVE_UP_BUT_ORDERED -> GAVE_UP_BUT_ORDERED
    }

    private fun cell(
        mark: Mark,
        column: Int,
    ) = when {
        mark.char != ' ' -> paint.cell(mark.char.toString(), mark.colour, dead[column])
        dead[column] && !paint.colours -> SHADE
        dead[column] -> paint.cell(" ", null, true)
        else -> " "
    }

    private fun column(millis: Long) = (millis / columnMillis).toInt().coerceIn(0, usedColumns - 1)

    /** What the marks mean, in as many lines as the width needs. */
    fun legend(): List<String> {
        val parts =
            listOf(
                (if (paint.colours) paint.cell("  ", null, true) else SHADE + SHADE) to "no signal",
                painted(KNOWN) to "the phone knows",
                painted(WAITING) to "waiting",
                painted(IN_FLIGHT) to "in flight",
                painted(FAILED) to "attempt failed",
                painted(WOKEN) to "woken by the network's return",
                painted(SERVED) to "served",
                painted(Mark('2', Paint.PURPLE)) to "ordered twice",
                painted(GAVE_UP) to "gave up",
                painted(GAVE_UP_BUT_ORDERED) to "gave up, yet the order stands",
            )
        val lines = mutableListOf<String>()
        var line = ""
        var length = 0
        for ((mark, text) in parts) {
            val partLength = text.length + 5
            if (length > 0 && length + partLength > columns) {
                lines += MARGIN + line.trimEnd()
                line = ""
                length = 0
            }
            line += "$mark $text   "
            length += partLength
        }
        return lines + (MARGIN + line.trimEnd())
    }

    private fun painted(mark: Mark) = paint.cell(mark.char.toString(), mark.colour, false)

    private data class Mark(
        val char: Char,
        val colour: Int?,
    )

    private companion object {
        const val MARGIN = "  "
        const val SHADE = "░"
        const val MIN_COLUMN_MILLIS = 100L
        const val AXIS_MIN_COLUMNS = 6
        val AXIS_STEPS = listOf(1, 2, 5, 10, 20, 60, 120, 300, 600, 3600)

        val NOTHING = Mark(' ', null)
        val KNOWN = Mark('▔', Paint.BLUE)
        val WAITING = Mark('─', Paint.GREY)
        val IN_FLIGHT = Mark('━', Paint.GREY)
        val FAILED = Mark('×', Paint.ORANGE)
        val WOKEN = Mark('▲', Paint.BLUE)
        val SERVED = Mark('✓', Paint.GREEN)
        val GAVE_UP = Mark('✗', Paint.RED)
        val GAVE_UP_BUT_ORDERED = Mark('?', Paint.RED)
    }
}
