// The figures as text.
package dev.comeback.demo

import java.util.Locale

/** The figures of both clients, side by side. */
internal fun scoreTable(
    handWritten: Score,
    comeback: Score,
): List<String> {
    fun row(
        title: String,
        value: (Score) -> String,
    ) = "  ${title.padEnd(TITLE)}${value(handWritten).padStart(COLUMN)}${value(comeback).padStart(COLUMN)}"

    return listOf(
        "  ${"".padEnd(TITLE)}${HAND_WRITTEN.padStart(COLUMN)}${COMEBACK.padStart(COLUMN)}",
        row("taps") { "${it.taps}" },
        row("succeeded") { "${it.succeeded}" },
        row("  of these within 2 s of the link's return") { "${it.prompt}" },
        row("gave up") { "${it.gaveUp}" },
        row("  of these the server has the order all the same") { "${it.gaveUpButOrdered}" },
        row("duplicate orders") { "${it.duplicates}" },
        row("lag p50") { seconds(it.lagP50) },
        row("lag p90") { seconds(it.lagP90) },
        row("attempts, refused ones included") { "${it.attempts}" },
        row("waits ended by the network's return") { "${it.wakes}" },
        row("sends that reached the server") { "${it.sends}" },
        row("  answered from store, by their key") { "${it.replays}" },
        row("orders the server made") { "${it.orders}" },
    )
}

internal const val LAG_MEANS =
    "Lag: from the link's return (or the tap, if the link was alive) to success. A tap that was given up has no lag and is left " +
        "out of p50 and p90, which flatters whoever gives up; \"within 2 s\" is of all taps. Waits are drawn anew in every run, so a " +
        "seed repeats the ride and the taps, the figures only nearly."

/** One line for each ride, and their sum. */
internal fun ridesTable(
    runs: List<RideRun>,
    worst: RideRun,
): List<String> {
    fun row(
        seed: String,
        dead: String,
        handWritten: Score,
        comeback: Score,
    ) = "  ${seed.padStart(6)}${dead.padStart(7)} │${cells(handWritten)} │${cells(comeback)}"

    val names = "  ${"".padStart(13)} │${HAND_WRITTEN.padStart(CELLS)} │${COMEBACK.padStart(CELLS)}"
    val heads = "  ${"seed".padStart(6)}${"dead s".padStart(7)} │$CELL_HEADS │$CELL_HEADS"
    val rides =
        runs.map { run ->
            val line = row("${run.seed}", "${run.ride.deadSeconds.size}", run.handWritten.score, run.comeback.score)
            if (run === worst) "$line ◀" else line
        }
    val dead = runs.sumOf { it.ride.deadSeconds.size }
    return listOf(names, heads) + rides +
        row("all", "$dead", runs.map { it.handWritten.score }.reduce(Score::plus), runs.map { it.comeback.score }.reduce(Score::plus))
}

private fun cells(score: Score) =
    "${score.succeeded}/${score.taps}".padStart(8) + "${score.gaveUp}".padStart(8) + "${score.duplicates}".padStart(4) +
        seconds(score.lagP50).padStart(8) + seconds(score.lagP90).padStart(8)

internal fun seconds(millis: Long?): String = if (millis == null) "–" else String.format(Locale.ROOT, "%.2f s", millis / 1000.0)

internal const val HAND_WRITTEN = "hand-written"
internal const val COMEBACK = "comeback"
private const val TITLE = 50
private const val COLUMN = 14
private const val CELLS = 36
private val CELL_HEADS = "served".padStart(8) + "gave up".padStart(8) + "dup".padStart(4) + "p50".padStart(8) + "p90".padStart(8)
