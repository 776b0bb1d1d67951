package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** What is known of the terminal, and text that fits into it. */
class TerminalTest {
    @Test
    fun `COLUMNS is the width, within reason`() {
        assertEquals(120, Terminal.detect(mapOf("COLUMNS" to "120", "TERM" to "xterm")).width)
        assertEquals(60, Terminal.detect(mapOf("COLUMNS" to "20", "TERM" to "xterm")).width)
        assertEquals(160, Terminal.detect(mapOf("COLUMNS" to "400", "TERM" to "xterm")).width)
    }

    @Test
    fun `with NO_COLOR, a dumb terminal or none there are no colours`() {
        for (environment in listOf(mapOf("TERM" to "xterm", "NO_COLOR" to "1"), mapOf("TERM" to "dumb"), emptyMap())) {
            assertEquals(false, Terminal.detect(environment + ("COLUMNS" to "100")).colours)
        }
    }

    @Test
    fun `text is broken between words`() {
        assertEquals(listOf("one two", "three", "four"), wrapped("one two three four", 8))
        assertEquals(listOf("unbreakable", "a"), wrapped("unbreakable a", 5))
    }

    @Test
    fun `the tables fit into a terminal of 100 columns`() {
        val run = Example.run
        val lines = scoreTable(run.handWritten.score, run.comeback.score) + ridesTable(listOf(run, run), run)
        assertTrue(lines.all { it.length <= 100 }, lines.joinToString("\n"))
    }
}
