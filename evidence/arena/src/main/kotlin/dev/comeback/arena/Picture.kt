// The match as a picture.
package dev.comeback.arena

import java.util.Locale
import kotlin.math.ln

/**
 * The trace as a strip with a lane for each client, and how long after the link's return the taps in long windows were served. Self-contained and
 * without scripts, on a card of its own. The same match gives the same bytes.
 */
internal fun picture(match: Match): String = Picture(match).draw()

private class Picture(
    private val match: Match,
) {
    private val out = StringBuilder()
    private val runs = listOf(match.limit) + match.clients
    private val pixelsPerMilli =
        (WIDTH - SIDE - LEFT) /
            match.link.trace.millis
                .toDouble()
    private val curves = runs.filter { it.inLongWindows().isNotEmpty() }

    fun draw(): String {
        val lanesEnd = LANES_TOP + runs.size * LANE
        val height = lanesEnd + CHART_GAP + CHART + FOOT
        line(
            """<svg xmlns="http://www.w3.org/2000/svg" width="$WIDTH" height="$height" viewBox="0 0 $WIDTH $height" role="img" """ +
                """aria-labelledby="title description" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">""",
        )
        val title = "The same ${match.moments.size} taps over the same link, ${match.clients.size} clients"
        line("""<title id="title">${xml(title)}</title>""")
        line("""<desc id="description">${xml(runs.joinToString("; ") { "${it.name}: ${figures(it)}" })}</desc>""")
        line("""<rect x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="12" fill="$CARD" stroke="$EDGE"/>""")
        text(SIDE, 44, title, 22, INK, bold = true)
        val model = match.link.model
        text(
            SIDE,
            69,
            "Modelled link, real libraries, virtual time. Trace ${match.link.trace.name}; loss noticed ${seconds(model.lossLate)} late, " +
                "return ${seconds(model.returnLate)}, exchange ${seconds(model.exchange)}.",
            13,
            SOFT,
        )
        legend()
        strip()
        runs.forEachIndexed { index, run -> lane(LANES_TOP + index * LANE, run) }
        chart(lanesEnd + CHART_GAP)
        line("</svg>")
        return out.toString()
    }

    private fun legend() {
        var x = SIDE
        for ((colour, meaning) in listOf(
            DEAD to "link dead",
            PALE to "gave up, as the limit had to",
            RED to "gave up, could have been served",
            AMBER to "served, more than 5 s after the link's return",
        )) {
            rect(x.toDouble(), 88.0, 20.0, 12.0, colour)
            text(x + 26, 98, meaning, 12, SOFT)
            x += 26 + (meaning.length * 6.3).toInt() + 20
        }
        text(
            SIDE,
            118,
            "Figures: served of what the limit serves, in windows of 10 s and more. It starts an attempt within 19.9 s, where it is answered.",
            12,
            SOFT,
        )
    }

    private fun strip() {
        rect(LEFT.toDouble(), STRIP_TOP.toDouble(), (WIDTH - SIDE - LEFT).toDouble(), STRIP.toDouble(), PLOT)
        val path = StringBuilder()
        for (outage in match.link.trace.outages) {
            val width = maxOf(outage.millis * pixelsPerMilli, LEAST)
            path.append("M${number(x(outage.from))} ${STRIP_TOP}h${number(width)}v${STRIP}h-${number(width)}z")
        }
        line("""<path d="$path" fill="$DEAD"/>""")
        text(SIDE, STRIP_TOP + 16, "trace", 13, SOFT)
        val hours = match.link.trace.millis / 1000.0 / 3600
        text(WIDTH - SIDE - 60, STRIP_TOP - 6, "${decimal(hours)} hours", 12, SOFT)
    }

    private fun lane(
        top: Int,
        run: Run,
    ) {
        text(SIDE, top + 14, run.name, 13, if (run.name.startsWith("comeback")) BLUE else INK, bold = true)
        text(SIDE, top + 28, figures(run), 11, SOFT)
        rect(LEFT.toDouble(), top + 4.0, (WIDTH - SIDE - LEFT).toDouble(), LANE - 8.0, PLOT)
        val givenUp = run.stories.filterNot { it.succeeded }
        ticks(top, givenUp.filterNot { it.isPossible }, PALE)
        ticks(top, run.stories.filter { story -> story.lag.let { it != null && it > LATE } }, AMBER)
        // Last, so that it is seen wherever it is: what matters.
        ticks(top, givenUp.filter { it.isPossible }, RED)
    }

    /** Taps that fall on the same tenth of a pixel share a tick. */
    private fun ticks(
        top: Int,
        stories: List<Story>,
        colour: String,
    ) {
        if (stories.isEmpty()) return
        val path = stories.map { number(x(it.moment.at)) }.distinct().joinToString("") { "M$it ${top + 4}v${LANE - 8}" }
        line("""<path d="$path" stroke="$colour" stroke-width="0.7" fill="none"/>""")
    }

    private fun chart(top: Int) {
        text(SIDE, top, "Taps in dead windows of 10 s and more: share served within so long after the link's return", 15, INK, bold = true)
        val (plotTop, bottom) = top + 14 to top + CHART - 20
        rect(LEFT.toDouble(), plotTop.toDouble(), CHART_WIDTH, (bottom - plotTop).toDouble(), PLOT)
        for (share in 1..4) {
            val y = bottom - share * (bottom - plotTop) / 4.0
            line("""<path d="M$LEFT ${number(y)}h${number(CHART_WIDTH)}" stroke="$EDGE" stroke-width="0.8"/>""")
            text(LEFT - 40, (y + 4).toInt(), "${share * 25} %", 11, SOFT)
        }
        for ((millis, label) in listOf(
            300L to "0.3 s",
            1_000L to "1 s",
            3_000L to "3 s",
            10_000L to "10 s",
            30_000L to "30 s",
            100_000L to "100 s",
        )) {
            line(
                """<text x="${number(lagX(millis))}" y="${bottom + 15}" font-size="11" fill="$SOFT" text-anchor="middle">$label</text>""",
            )
        }
        // The first in the list on top of the others.
        for ((index, run) in curves.withIndex().reversed()) {
            val colour = COLOURS[index % COLOURS.size]
            val dash = if (index >= COLOURS.size) """ stroke-dasharray="4 3"""" else ""
            val stories = run.inLongWindows()
            val lags = stories.mapNotNull { it.lag }.sorted()
            val points = StringBuilder()
            for (step in 0..STEPS) {
                val millis = (LEAST_LAG * Math.pow(MOST_LAG / LEAST_LAG, step / STEPS.toDouble()))
                val served = lags.count { it <= millis }
                val y = bottom - served * (bottom - plotTop) / stories.size.toDouble()
                points.append("${number(lagX(millis.toLong()))},${number(y)} ")
            }
            line("""<polyline points="${points.trim()}" fill="none" stroke="$colour" stroke-width="1.8"$dash/>""")
            val y = plotTop + 10 + index * 14
            line("""<path d="M${LEFT + CHART_WIDTH.toInt() + 12} ${y - 4}h18" stroke="$colour" stroke-width="1.8"$dash/>""")
            text(LEFT + CHART_WIDTH.toInt() + 36, y, run.name, 11, SOFT)
        }
    }

    private fun figures(run: Run): String {
        val score = score(run.inLongWindows().ifEmpty { run.stories })
        return "${decimal(score.percentOfPossible ?: 0.0)} %, lag p50 ${seconds(score.lagP50)}"
    }

    private fun x(millis: Long) = LEFT + millis * pixelsPerMilli

    private fun lagX(millis: Long): Double {
        val share = ln(millis.coerceIn(LEAST_LAG.toLong(), MOST_LAG.toLong()) / LEAST_LAG) / ln(MOST_LAG / LEAST_LAG)
        return LEFT + share * CHART_WIDTH
    }

    // The demo's SvgTimeline has its own of these: the two programs share no module, and a module would be longer than they are.

    private fun rect(
        x: Double,
        y: Double,
        width: Double,
        height: Double,
        colour: String,
    ) = line("""<rect x="${number(x)}" y="${number(y)}" width="${number(width)}" height="${number(height)}" fill="$colour"/>""")

    private fun text(
        x: Int,
        y: Int,
        content: String,
        size: Int,
        colour: String,
        bold: Boolean = false,
    ) {
        val weight = if (bold) """ font-weight="700"""" else ""
        line("""<text x="$x" y="$y" font-size="$size"$weight fill="$colour">${xml(content)}</text>""")
    }

    private fun line(text: String) {
        out.append(text).append('\n')
    }

    private fun number(value: Double) = String.format(Locale.ROOT, "%.1f", value)

    private fun xml(text: String) =
        text
            .replace("&", "&amp;")
            .replace("<", "&lt;")
            .replace(">", "&gt;")
            .replace("\"", "&quot;")

    private companion object {
        const val WIDTH = 1000
        const val SIDE = 28
        const val LEFT = 232
        const val STRIP_TOP = 142
        const val STRIP = 24
        const val LANES_TOP = 176
        const val LANE = 36
        const val CHART_GAP = 40
        const val CHART = 280
        const val CHART_WIDTH = 520.0
        const val FOOT = 16
        const val LATE = 5_000L

        /** The thinnest outage that can still be seen, in pixels. */
        const val LEAST = 0.3
        const val STEPS = 120
        const val LEAST_LAG = 250.0
        const val MOST_LAG = 200_000.0

        const val CARD = "#ffffff"
        const val EDGE = "#d0d7de"
        const val PLOT = "#f2f7f2"
        const val DEAD = "#8c959f"
        const val INK = "#1f2328"
        const val SOFT = "#57606a"
        const val PALE = "#e6b8b7"
        const val RED = "#cf222e"
        const val AMBER = "#d4a72c"
        const val BLUE = "#0969da"
        val COLOURS = listOf("#1f2328", "#0969da", "#54aeff", "#8250df", "#bf3989", "#1a7f37", "#57606a", "#cf222e", "#bc4c00")
    }
}
