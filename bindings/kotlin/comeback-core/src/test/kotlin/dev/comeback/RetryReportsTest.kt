// How reports travel with exceptions.
package dev.comeback

import dev.comeback.World.Companion.SECOND
import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.ObjectInputStream
import java.io.ObjectOutputStream
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue

class RetryReportsTest {
    private val report = RetryReport.of(listOf(RetryEvent.Finished(1, null, StopReason.Attempts, 3, SECOND, true)))
    private val other = RetryReport.of(listOf(RetryEvent.Finished(2, null, StopReason.Offline, 1, SECOND, true)))

    private fun Throwable.failures(): List<Throwable> = suppressed.filter { it !is AttachedReport }

    @Test
    fun `an exception that Comeback has not seen has no report`() {
        assertNull(IOException().retryReport)
        assertNull(IOException(IllegalStateException()).apply { addSuppressed(IOException()) }.retryReport)
    }

    @Test
    fun `the report is found on the exception, and the exception is what it was`() {
        val last = IOException("timeout")
        val trace = last.stackTrace
        attachReport(report, last, emptyList())
        assertSame(report, last.retryReport)
        assertEquals("timeout", last.message)
        assertTrue(trace.contentEquals(last.stackTrace))
    }

    @Test
    fun `the report is found through layers that wrap what they rethrow`() {
        val last = IOException("timeout")
        attachReport(report, last, emptyList())
        assertSame(report, RuntimeException(IllegalStateException(last)).retryReport)
    }

    @Test
    fun `printed, the report is one line without a stack`() {
        val last = IOException("timeout")
        attachReport(report, last, emptyList())
        val printed = last.stackTraceToString()
        assertTrue("Suppressed: Comeback: attempts after 1000 ms, 3 counted; failed []\n" in printed.replace("\r", ""), printed)
        assertTrue(
            last.suppressed
                .single()
                .stackTrace
                .isEmpty(),
        )
    }

    @Test
    fun `earlier failures are suppressed ones, in order`() {
        val earlier = List(3) { IOException("$it") }
        val last = IOException("last")
        attachReport(report, last, earlier)
        assertEquals(earlier, last.failures())
    }

    @Test
    fun `one exception thrown by every attempt does not suppress itself`() {
        val same = IOException("same")
        attachReport(report, same, listOf(same, same, same))
        assertEquals(emptyList(), same.failures())
        assertSame(report, same.retryReport)
    }

    @Test
    fun `an exception thrown by several attempts is suppressed once`() {
        val same = IOException("same")
        val last = IOException("last")
        attachReport(report, last, listOf(same, same))
        assertEquals(listOf<Throwable>(same), last.failures())
    }

    @Test
    fun `an earlier failure that is the last one's cause, or has it as cause, makes no circle`() {
        val cause = IOException("cause")
        val last = IOException("last", cause)
        val wrapping = IOException("wrapping", last)
        val suppressing = IOException("suppressing").apply { addSuppressed(last) }
        attachReport(report, last, listOf(cause, wrapping, suppressing))
        assertEquals(emptyList(), last.failures())
        assertSame(report, last.retryReport)
    }

    @Test
    fun `exceptions in a circle are looked through once`() {
        val one = IOException("one")
        val two = IOException("two", one)
        one.initCause(two)
        attachReport(report, two, listOf(one, IOException("other")))
        assertEquals(listOf("other"), two.failures().map { it.message })
        assertSame(report, one.retryReport)
        assertNull(
            IOException("three")
                .apply {
                    val four = IOException("four", this)
                    initCause(four)
                }.retryReport,
        )
    }

    @Test
    fun `a constant exception does not grow from call to call and tells the last call's report`() {
        val constant = IOException("constant")
        attachReport(other, constant, listOf(IOException()))
        val size = constant.suppressed.size
        repeat(100) { attachReport(report, constant, listOf(IOException())) }
        assertEquals(size, constant.suppressed.size)
        assertSame(report, constant.retryReport)
    }

    @Test
    fun `an exception that takes no suppressed ones is left alone`() {
        val closed = object : Exception("closed", null, false, false) {}
        attachReport(report, closed, listOf(IOException()))
        assertNull(closed.retryReport)
    }

    @Test
    fun `an exception that throws when asked for its cause does no harm`() {
        val hostile =
            object : IOException("hostile") {
                override val cause: Throwable get() = throw IllegalStateException()
            }
        attachReport(report, hostile, listOf(IOException()))
        attachReport(report, IOException(), listOf(hostile))
        assertNull(hostile.retryReport)
    }

    @Test
    fun `an exception for a closed response brings its own report`() {
        val stopped = RetryStoppedException(StopReason.Attempts, 503, listOf("Retry-After" to "1"), report)
        assertSame(report, stopped.retryReport)
        assertSame(report, RuntimeException(stopped).retryReport)
        assertEquals("no further attempt (attempts) after HTTP status 503", stopped.message)
    }

    @Test
    fun `an exception with a report can be serialised`() {
        val last = IOException("timeout")
        attachReport(report, last, emptyList())
        val stopped = RetryStoppedException(StopReason.Attempts, 503, emptyList(), report)
        for (exception in listOf(last, stopped)) {
            val bytes = ByteArrayOutputStream().also { ObjectOutputStream(it).writeObject(exception) }.toByteArray()
            val read = ObjectInputStream(ByteArrayInputStream(bytes)).readObject() as IOException
            assertEquals(exception.message, read.message)
        }
    }

    @Test
    fun `that a request must not be repeated is found behind wrappers and suppressed exceptions`() {
        val before = reportsAttached.get()
        val last = IOException("timeout")
        attachReport(report, last, emptyList(), forbidsRepetition = true)
        assertTrue(last.forbidsRepetitionSince(before))
        assertTrue(RuntimeException(IllegalStateException(last)).forbidsRepetitionSince(before))
        assertTrue(IOException().apply { addSuppressed(IOException(last)) }.forbidsRepetitionSince(before))
    }

    @Test
    fun `what an earlier call left on an exception that is thrown again forbids nothing`() {
        val constant = IOException("constant")
        attachReport(report, constant, emptyList(), forbidsRepetition = true)
        val later = reportsAttached.get()
        assertEquals(false, constant.forbidsRepetitionSince(later))
        attachReport(other, constant, emptyList(), forbidsRepetition = true)
        assertTrue(constant.forbidsRepetitionSince(later))
    }

    @Test
    fun `a report of a request that may be repeated forbids nothing`() {
        val before = reportsAttached.get()
        val last = IOException("timeout")
        attachReport(report, last, emptyList())
        assertEquals(false, last.forbidsRepetitionSince(before))
    }
}
