// The ride as a picture.
package dev.comeback.demo

import java.util.Locale

/**
 * The ride as a picture: one lane per client on the same time axis, dead bands behind, each tap a line from tap to end.
 * Self-contained and without scripts; on a card of its own, so it reads on white and on dark pages. The same run gives the
 * same bytes.
 */
internal fun svgTimeline(run: RideRun): String = SvgTimeline(run).draw()

private class SvgTimeline(
    private val run: RideRun,
) {
    private val out = StringBuilder()
    private val pixelsPerMilli = (WIDTH - 2 * SIDE) / run.endMillis.toDouble()
    private val lanes = run.clients.map { it to it.rows(gapMillis = (ROW_GAP / pixelsPerMilli).toLong()) }

    fun draw(): String {
        val height = lanes.fold(LANES_TOP) { y, (_, rows) -> y + laneHeight(rows) + LANE_GAP } + FOOT
        val description = run.clients.joinToString("; ") { "${it.name}: ${figures(it).joinToString(", ") { (text, _) -> text }}" }
        line(
            """<svg xmlns="http://www.w3.org/2000/svg" width="$WIDTH" height="$height" viewBox="0 0 $WIDTH $height" role="img" """ +
                """aria-labelledby="title description" font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">""",
        )
        line("""<title id="title">${xml(title())}</title>""")
        line("""<desc id="description">${xml(description)}</desc>""")
        line("""<rect x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="12" fill="$CARD" stroke="$EDGE"/>""")
        text(SIDE, 44, title(), 22, INK, bold = true)
        text(SIDE, 69, subtitle(), 13, SOFT)
        legend(98)
        var y = LANES_TOP
        for ((client, rows) in lanes) {
            lane(y, client, rows)
            y += laneHeight(rows) + LANE_GAP
        }
        axis(y - LANE_GAP + 16)
        line("</svg>")
        return out.toString()
    }

    private fun title() = "One ride, the same ${run.comeback.score.taps} taps on “order”, two retrying clients"

    private fun subtitle() =
        "Seed ${run.seed}, ${run.ride.name}: no signal for ${run.ride.deadSeconds.size} of ${run.ride.seconds} s. " +
            "Same timeouts for both, and links that die and return together."

    private fun legend(y: Int) {
        legendRow(
            y,
            { x: Double, middle: Double -> rect(x, middle - 6, SAMPLE, 12.0, DEAD) } to "no signal",
            { x: Double, middle: Double -> rect(x, middle - KNOWN_HEIGHT / 2, SAMPLE, KNOWN_HEIGHT, KNOWN) } to "the phone knows of it",
            { x: Double, middle: Double -> wait(x, x + SAMPLE, middle) } to "waiting",
            { x: Double, middle: Double -> inFlight(x + 3, x + SAMPLE - 3, middle) } to "in flight",
            inTheMiddle(::failed) to "attempt failed",
            inTheMiddle(::woken) to "woken by the network's return",
        )
        legendRow(
            y + 22,
            inTheMiddle(::served) to "served",
            inTheMiddle { x, middle -> orderedTwice(x, middle, 2) } to "served, but ordered more than once",
            inTheMiddle(::gaveUp) to "gave up",
            inTheMiddle(::gaveUpButOrdered) to "gave up, yet the server has the order",
        )
    }

    private fun inTheMiddle(draw: (Double, Double) -> Unit): (Double, Double) -> Unit = { x, middle -> draw(x + SAMPLE / 2, middle) }

    /** A sample, what it means, and so on; widths are estimated, no font being at hand. */
    private fun legendRow(
        y: Int,
        vararg entries: Pair<(Double, Double) -> Unit, String>,
    ) {
        var x = SIDE
        for ((draw, meaning) in entries) {
            draw(x.toDouble(), y - 4.0)
            text(x + SAMPLE.toInt() + 6, y, meaning, 12, SOFT)
            x += SAMPLE.toInt() + 6 + (meaning.length * 6.3).toInt() + 16
        }
    }

    private fun lane(
        top: Int,
        client: ClientRun,
        rows: List<List<TapStory>>,
    ) {
        text(SIDE, top + 16, client.name, 17, INK, bold = true)
        val spans =
            figures(
                client,
            ).joinToString("  ·  ") { (text, colour) -> """<tspan fill="$colour" font-weight="600">${xml(text)}</tspan>""" }
        line(
            """<text x="${WIDTH - SIDE}" y="${top + 16}" font-size="14" fill="$SOFT" text-anchor="end" xml:space="preserve">$spans</text>""",
        )
        text(SIDE, top + 35, client.setUp, 12, SOFT)

        val plotTop = top + LANE_HEAD
        val plotHeight = rows.size * ROW + 2 * PLOT_PADDING
        rect(SIDE, plotTop.toDouble(), (WIDTH - 2 * SIDE).toDouble(), plotHeight.toDouble(), PLOT)
        for (outage in run.ride.outages) {
            rect(x(outage.from), plotTop.toDouble(), x(outage.until) - x(outage.from), plotHeight.toDouble(), DEAD)
        }
        if (client === run.comeback) {
            for (known in run.knownOffline) rect(x(known.from), plotTop.toDouble(), x(known.until) - x(known.from), KNOWN_HEIGHT, KNOWN)
        }
        rows.forEachIndexed { index, row ->
            val y = plotTop + PLOT_PADDING + index * ROW + ROW / 2.0
            for (story in row) story(client, story, y)
        }
    }

    private fun story(
        client: ClientRun,
        story: TapStory,
        y: Double,
    ) {
        wait(x(story.tap.atMillis), x(story.endedAt), y)
        for (attempt in story.attempts) {
            if (attempt.until - attempt.from >= VISIBLE_MILLIS) inFlight(x(attempt.from), x(attempt.until), y)
            if (!attempt.answered) failed(x(attempt.until), y)
        }
        for (wake in story.wakes) woken(x(wake), y)
        val end = x(story.endedAt)
        when (client.endingOf(story)) {
            Ending.SERVED -> served(end, y)
            Ending.ORDERED_TWICE -> orderedTwice(end, y, client.ordersOf(story))
            Ending.GAVE_UP -> gaveUp(end, y)
            Ending.GAVE_UP_BUT_ORDERED -> gaveUpButOrdered(end, y)
        }
    }

    private fun axis(y: Int) {
        val step = listOf(1, 2, 5, 10, 20, 60, 120, 300, 600).firstOrNull { it * Ride.SECOND * pixelsPerMilli >= 60 } ?: 1200
        for (second in 0..(run.endMillis / Ride.SECOND).toInt() step step) {
            val label = if (second == 0) "0 s" else "$second"
            line("""<text x="${number(x(second * Ride.SECOND))}" y="$y" font-size="12" fill="$SOFT" text-anchor="middle">$label</text>""")
        }
    }

    private fun figures(client: ClientRun): List<Pair<String, String>> =
        with(client.score) {
            listOf(
                "$succeeded of $taps served" to GREEN,
                "$gaveUp gave up" to if (gaveUp == 0) SOFT else RED,
                (if (duplicates == 1) "1 duplicate order" else "$duplicates duplicate orders") to if (duplicates == 0) SOFT else PURPLE,
                "lag p50 ${seconds(lagP50)}, p90 ${seconds(lagP90)}" to SOFT,
            )
        }

    private fun laneHeight(rows: List<List<TapStory>>) = LANE_HEAD + rows.size * ROW + 2 * PLOT_PADDING

    private fun x(millis: Long) = SIDE + millis * pixelsPerMilli

    private fun wait(
        from: Double,
        until: Double,
        y: Double,
    ) = line("""<path d="M${number(from)} ${number(y)}H${number(until)}" stroke="$WAIT" stroke-width="1.6"/>""")

    private fun inFlight(
        from: Double,
        until: Double,
        y: Double,
    ) = line("""<path d="M${number(from)} ${number(y)}H${number(until)}" stroke="$FLIGHT" stroke-width="4.5" stroke-linecap="round"/>""")

    private fun failed(
        x: Double,
        y: Double,
    ) = strokes("M-3 -3 3 3M-3 3 3 -3", x, y, ORANGE, 1.8)

    private fun woken(
        x: Double,
        y: Double,
    ) = line(
        """<path transform="translate(${number(
            x,
        )} ${number(y)})" d="M0 -6.5 5.5 4H-5.5Z" fill="$BLUE" stroke="$CARD" stroke-width="0.8"/>""",
    )

    private fun served(
        x: Double,
        y: Double,
    ) {
        disc(x, y, GREEN)
        strokes("M-2.8 0.2 -0.8 2.2 2.9 -2", x, y, CARD, 1.6)
    }

    private fun orderedTwice(
        x: Double,
        y: Double,
        orders: Int,
    ) = lettered(x, y, "$orders", PURPLE)

    private fun gaveUp(
        x: Double,
        y: Double,
    ) {
        disc(x, y, RED)
        strokes("M-2.2 -2.2 2.2 2.2M-2.2 2.2 2.2 -2.2", x, y, CARD, 1.6)
    }

    private fun gaveUpButOrdered(
        x: Double,
        y: Double,
    ) = lettered(x, y, "?", RED)

    private fun lettered(
        x: Double,
        y: Double,
        letter: String,
        colour: String,
    ) {
        disc(x, y, colour)
        line(
            """<text x="${number(
                x,
            )}" y="${number(y + 3.5)}" font-size="9.5" font-weight="700" fill="$CARD" text-anchor="middle">$letter</text>""",
        )
    }

    private fun disc(
        x: Double,
        y: Double,
        colour: String,
    ) = line("""<circle cx="${number(x)}" cy="${number(y)}" r="6" fill="$colour" stroke="$CARD" stroke-width="0.8"/>""")

    private fun strokes(
        path: String,
        x: Double,
        y: Double,
        colour: String,
        thickness: Double,
    ) = line(
        """<path transform="translate(${number(x)} ${number(y)})" d="$path" fill="none" stroke="$colour" """ +
            """stroke-width="$thickness" stroke-linecap="round"/>""",
    )

    private fun rect(
        x: Number,
        y: Double,
        width: Double,
        height: Double,
        colour: String,
    ) = line(
        """<rect x="${number(x.toDouble())}" y="${number(y)}" width="${number(width)}" height="${number(height)}" fill="$colour"/>""",
    )

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
            .map {
                when {
                    it == '&' -> "&amp;"
                    it == '<' -> "&lt;"
                    it == '>' -> "&gt;"
                    it == '"' -> "&quot;"
                    it < ' ' -> "?"
                    else -> "$it"
                }
            }.joinToString("")

    private companion object {
        const val WIDTH = 1000
        const val SIDE = 28
        const val LANES_TOP = 148
        const val LANE_HEAD = 46
        const val LANE_GAP = 22
        const val PLOT_PADDING = 6
        const val ROW = 17
        const val ROW_GAP = 16.0
        const val FOOT = 12
        const val KNOWN_HEIGHT = 4.0
        const val SAMPLE = 20.0

        /** Shorter attempts are a mark only. */
        const val VISIBLE_MILLIS = 40

        const val CARD = "#ffffff"
        const val EDGE = "#d0d7de"
        const val PLOT = "#f2f7f2"
        const val DEAD = "#d3d6dc"
        const val KNOWN = "#54aeff"
        const val INK = "#1f2328"
        const val SOFT = "#57606a"
        const val WAIT = "#8b949e"
        const val FLIGHT = "#59636e"
        const val GREEN = "#1a7f37"
        const val RED = "#cf222e"
        const val ORANGE = "#bc4c00"
        const val PURPLE = "#8250df"
        const val BLUE = "#0969da"
    }
}
