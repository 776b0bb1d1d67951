package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** The timelines in the terminal, character by character. */
class TerminalTimelineTest {
    private val run = Example.run

    @Test
    fun `without colours dead seconds are shaded and every mark is in its column`() {
        // 60 columns after the margin, 0.2 s each: tap 1 at column 9, dead from 10 to 29.
        val timeline = TerminalTimeline(run, width = 62, Paint(colours = false))
        assertEquals(
            listOf(
                "  0s        2░░░░░░░░░4░░░░░░░░░6         8         10",
                "           ─×─────────────────────━2           ━✓",
                "            ░░░░░×────✗░░░░░░░░░",
            ).joinToString("\n"),
            timeline.lines(run.handWritten).joinToString("\n"),
        )
    }

    @Test
    fun `a wake stays visible beside the success it brought`() {
        val timeline = TerminalTimeline(run, width = 62, Paint(colours = false))
        val row = timeline.lines(run.comeback)[2]
        assertTrue(row.contains("▲✓"), row)
    }

    @Test
    fun `what the phone knew of is marked for the client that listens`() {
        val timeline = TerminalTimeline(run, width = 62, Paint(colours = false))
        assertEquals("            " + "░".repeat(15) + "▔".repeat(6), timeline.lines(run.comeback)[1])
        assertTrue(timeline.lines(run.handWritten).none { '▔' in it })
    }

    @Test
    fun `with colours the picture is the same once they are taken out, dead seconds being a background`() {
        val plain = TerminalTimeline(run, 100, Paint(colours = false))
        val coloured = TerminalTimeline(run, 100, Paint(colours = true))
        for (client in run.clients) {
            assertEquals(
                plain.lines(client).map { it.replace('░', ' ').trimEnd() },
                coloured.lines(client).map { it.replace(COLOUR, "").trimEnd() },
            )
        }
        assertTrue(coloured.lines(run.comeback)[2].contains("\u001b[38;5;"))
    }

    @Test
    fun `no line is wider than the terminal`() {
        for (width in listOf(60, 80, 100, 160)) {
            val timeline = TerminalTimeline(run, width, Paint(colours = false))
            for (line in run.clients.flatMap(timeline::lines) + timeline.legend()) {
                assertTrue(line.length <= width, "$width: $line")
            }
        }
    }

    @Test
    fun `the legend names every mark`() {
        val legend = TerminalTimeline(run, 100, Paint(colours = false)).legend().joinToString("\n")
        val marks =
            "░░ no signal|▔ the phone knows|─ waiting|━ in flight|× attempt failed|▲ woken|" +
                "✓ served|2 ordered twice|✗ gave up|? gave up, yet"
        for (mark in marks.split('|')) {
            assertTrue(mark in legend, mark)
        }
    }

    private companion object {
        val COLOUR = Regex("\u001b\\[[0-9;]*m")
    }
}
