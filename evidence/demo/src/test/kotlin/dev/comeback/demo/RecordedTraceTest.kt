package dev.comeback.demo

import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.nio.file.Files
import java.nio.file.Path
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

/** Reading recorded traces, good ones and bad ones. */
class RecordedTraceTest {
    @TempDir
    lateinit var folder: Path

    @Test
    fun `a second is dead when goodput is at most a tenth of a megabit, in any unit`() {
        val ride =
            read(
                "0.11,Mbits/sec\n0.10,Mbits/sec\n101,Kbits/sec\n100,Kbits/sec\n100001,bits/sec\n100000,bits/sec\n0,bits/sec\n",
            ).window(0, 60)
        assertEquals(listOf(0, 2, 4), ride.aliveSeconds)
        assertEquals(listOf(1, 3, 5, 6), ride.deadSeconds)
    }

    @Test
    fun `a header on the first line is no second`() {
        assertEquals(1, read("Value,Unit\n0.79,Mbits/sec\n").seconds)
    }

    @Test
    fun `a line ends as on any system and the last one may lack its end`() {
        assertEquals(3, read("1,Mbits/sec\r\n2,Mbits/sec\n3,Mbits/sec").seconds)
    }

    @Test
    fun `a window is cut from the trace and named by its seconds`() {
        val trace = read("1,Mbits/sec\n0,Mbits/sec\n1,Mbits/sec\n0,Mbits/sec\n")
        val ride = trace.window(from = 1, length = 2)
        assertEquals("trace.csv, seconds 1 to 2", ride.name)
        assertEquals(listOf(0), ride.deadSeconds)
        assertEquals(3, trace.window(from = 1, length = 60).seconds)
    }

    @Test
    fun `a window that would begin after the end is refused with the length of the trace`() {
        assertProblem("the trace has 1 seconds (0 to 0), so no window can begin at 1") { read("1,Mbits/sec\n").window(1, 60) }
    }

    @Test
    fun `a drawn window is dead and alive for a tenth of its time each or more, and a seed draws the same again`() {
        // 200 alive, 20 dead, 200 alive.
        val seconds = List(420) { if (it in 200 until 220) "0,bits/sec" else "1,Mbits/sec" }
        val trace = read(seconds.joinToString("\n"))
        val drawn = (1L..200L).map { trace.drawnWindow(it, 60) }
        for (ride in drawn) assertEquals(true, ride.deadSeconds.size in 6..54, ride.name)
        assertEquals(trace.drawnWindow(5, 60).name, drawn[4].name)
        assertEquals(true, drawn.map { it.name }.distinct().size > 40)
    }

    @Test
    fun `of a trace without outages, or shorter than the window, the beginning is drawn`() {
        assertEquals("trace.csv, seconds 0 to 59", read("1,Mbits/sec\n".repeat(100)).drawnWindow(9, 60).name)
        assertEquals("trace.csv, seconds 0 to 9", read("1,Mbits/sec\n".repeat(10)).drawnWindow(9, 60).name)
    }

    @Test
    fun `a bad line is named with its number, what was found and what was expected`() {
        assertProblem(":2: found \"12\", expected two fields, like \"1.58,Mbits/sec\"") { read("1,Mbits/sec\n12\n") }
        assertProblem(":2: found \"\", expected two fields, like \"1.58,Mbits/sec\"") { read("1,Mbits/sec\n\n1,Mbits/sec\n") }
        assertProblem(":1: found \"1,2,Mbits/sec\", expected two fields, like \"1.58,Mbits/sec\"") { read("1,2,Mbits/sec\n") }
        assertProblem(":3: found \"fast,Mbits/sec\", expected a number of 0 or more before the comma, like \"1.58,Mbits/sec\"") {
            read("Value,Unit\n1,Mbits/sec\nfast,Mbits/sec\n")
        }
        assertProblem(":1: found \"-1,Mbits/sec\", expected a number of 0 or more before the comma, like \"1.58,Mbits/sec\"") {
            read("-1,Mbits/sec\n")
        }
        assertProblem(":1: found \"NaN,Mbits/sec\", expected a number of 0 or more before the comma, like \"1.58,Mbits/sec\"") {
            read("NaN,Mbits/sec\n")
        }
        assertProblem(":1: found \"5,MB/s\", expected one of the units Mbits/sec, Kbits/sec, bits/sec after the comma") { read("5,MB/s\n") }
        assertProblem(":2: found \"Value,Unit\", expected a number of 0 or more before the comma, like \"1.58,Mbits/sec\"") {
            read("1,Mbits/sec\nValue,Unit\n")
        }
    }

    @Test
    fun `what is no text is quoted so that it can be read`() {
        val problem = assertFailsWith<TraceProblem> { read("\u0000\u0007${"x".repeat(500)}\n") }
        assertEquals(
            "${folder.resolve("trace.csv")}:1: found \"??${"x".repeat(38)}…\", expected two fields, like \"1.58,Mbits/sec\"",
            problem.message,
        )
    }

    @Test
    fun `an empty trace, a missing file and a folder say what was expected`() {
        assertProblem(":1: found the end of the file, expected a line like \"1.58,Mbits/sec\"") { read("") }
        assertProblem(":2: found the end of the file, expected a line like \"1.58,Mbits/sec\"") { read("Value,Unit\n") }
        assertProblem(
            "there is no such file; expected a trace of lines like \"1.58,Mbits/sec\"",
        ) { RecordedTrace.read(folder.resolve("none.csv")) }
        assertProblem("expected a trace of lines like \"1.58,Mbits/sec\"") { RecordedTrace.read(folder) }
    }

    private fun read(text: String): RecordedTrace {
        val file = folder.resolve("trace.csv")
        Files.write(file, text.toByteArray())
        return RecordedTrace.read(file)
    }

    private fun assertProblem(
        expectedEnd: String,
        read: () -> Unit,
    ) {
        val message = assertFailsWith<TraceProblem> { read() }.message!!
        assertEquals(expectedEnd, message.takeLast(expectedEnd.length))
        assertEquals(folder.toString(), message.take(folder.toString().length))
    }
}
