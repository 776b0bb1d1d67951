// Traces, recorded and generated.
package dev.comeback.arena

import org.junit.jupiter.api.io.TempDir
import java.nio.file.Files
import java.nio.file.Path
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue

class TraceTest {
    @TempDir
    lateinit var folder: Path

    private fun file(vararg lines: String): Path = Files.write(folder.resolve("trace.csv"), lines.asList())

    @Test
    fun `a second is dead at a tenth of a megabit and below, in any unit`() {
        val trace = recordedTrace(file("Value,Unit", "1.5,Mbits/sec", "100,Kbits/sec", "0.1,Mbits/sec", "100001,bits/sec"))
        assertEquals(listOf(Span(1_000, 3_000)), trace.outages)
        assertEquals(4_000, trace.millis)
    }

    @Test
    fun `a line that is none is named by its number`() {
        for (line in listOf("1.5", "fast,Mbits/sec", "-1,Mbits/sec", "1,parsec", "NaN,Mbits/sec", "1,Mbits/sec,2")) {
            val problem = assertFailsWith<ArenaProblem>(line) { recordedTrace(file("1,Mbits/sec", line)) }
            assertContains(problem.message!!, "trace.csv:2:")
        }
    }

    @Test
    fun `an empty file and a missing one are told apart`() {
        assertContains(assertFailsWith<ArenaProblem> { recordedTrace(file()) }.message!!, "empty")
        assertContains(assertFailsWith<ArenaProblem> { recordedTrace(folder.resolve("none")) }.message!!, "cannot be read")
    }

    @Test
    fun `generated traces look like the recorded trains`() {
        val statistics = (1L..20).map { generatedTrace(it).statistics }
        assertTrue(statistics.map { it.deadPercent }.average() in 8.0..12.0)
        assertTrue(statistics.map { it.p50 }.average() in 1.0..2.0)
        assertTrue(statistics.map { it.p90 }.average() in 6.0..12.0)
        assertTrue(statistics.map { it.longOutages * 100.0 / it.outages }.average() in 7.0..13.0)
    }

    @Test
    fun `the same seed generates the same trace and another seed another`() {
        assertEquals(generatedTrace(3).outages, generatedTrace(3).outages)
        assertTrue(generatedTrace(3).outages != generatedTrace(4).outages)
    }
}
