// Where the native library cannot be loaded. Runs in a virtual machine of its own, see pom.xml.
package dev.comeback

import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import org.junit.jupiter.api.Tag
import java.io.IOException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue

@Tag("without-library")
class WithoutLibraryTest {
    private val file = "/nonexistent/libcomeback.so"

    private class Listening : RetryListener {
        val heard = java.util.concurrent.CopyOnWriteArrayList<RetryEvent>()
        private val told = CountDownLatch(1)

        override fun onEvent(event: RetryEvent) {
            heard += event
            if (event is RetryEvent.Unavailable) told.countDown()
        }

        fun awaitUnavailable(): RetryEvent.Unavailable {
            assertTrue(told.await(10, TimeUnit.SECONDS))
            return heard.filterIsInstance<RetryEvent.Unavailable>().single()
        }
    }

    @Test
    fun `the listener hears once which file was missing, on which architecture, and why`() {
        val listening = Listening()
        val comeback = Comeback { listener = listening }
        val unavailable = listening.awaitUnavailable()
        assertEquals(file, unavailable.file)
        assertEquals(System.getProperty("os.arch"), unavailable.architecture)
        assertIs<UnsatisfiedLinkError>(unavailable.cause)
        repeat(3) { CallSession(comeback, RetryPolicy.READ, null, RequestFacts("GET")).failed(World.RESET) }
        listening.awaitUnavailable()
    }

    @Test
    fun `the self-check throws the reason, every time the same`() {
        val comeback = Comeback()
        repeat(3) {
            val thrown = assertFailsWith<ComebackUnavailableException> { comeback.selfCheck() }
            assertEquals(file, thrown.file)
            assertIs<UnsatisfiedLinkError>(thrown.cause)
            assertTrue(file in checkNotNull(thrown.message))
        }
    }

    @Test
    fun `a success at once works as ever`() {
        val listening = Listening()
        val comeback = Comeback { listener = listening }
        listening.awaitUnavailable()
        val session = CallSession(comeback, RetryPolicy.READ, "orders", RequestFacts("GET"))
        session.noteAttempt()
        session.succeeded()
        val final = assertIs<RetryEvent.Finished>(listening.heard.last())
        assertEquals(listOf("orders", null, 1), listOf(final.label, final.reason, final.counted))
    }

    @Test
    fun `a failure ends its call at once and is never thrown at`() {
        val listening = Listening()
        val comeback = Comeback { listener = listening }
        val session = CallSession(comeback, RetryPolicy.PAYMENT, null, RequestFacts("GET"))
        session.noteAttempt()
        val failure = IOException("reset")
        assertEquals(StopReason.Internal, assertIs<NextStep.Stop>(session.failed(Outcome.failure(FailureKind.RESET, failure))).reason)
        assertIs<NextStep.Stop>(session.woken())
        assertIs<NextStep.Stop>(session.interrupted(sentNothing = true, bodyUntouched = true))
        session.attachReportTo(failure)
        assertEquals(StopReason.Internal, failure.retryReport?.reason)
        listening.awaitUnavailable()
        assertEquals(1, listening.heard.count { it is RetryEvent.Finished })
    }

    @Test
    fun `presets are what they are`() {
        assertNotNull(RetryPolicy.PAYMENT.driverFacts)
        assertEquals(true, RetryPolicy.PAYMENT.driverFacts?.clientResendsOff)
        assertTrue("3 attempts" in RetryPolicy.PAYMENT.toString())
    }

    @Test
    fun `a policy that is built lets requests pass, even one built over another`() {
        val built = RetryPolicy(RetryPolicy.READ) { maxAttempts = 0 }
        val over = RetryPolicy(built) { maxAttempts = 6 }
        for (policy in listOf(built, over, RetryPolicy.fromJson("{}"), RetryPolicy.fromJson("no JSON"))) {
            assertNull(policy.driverFacts)
            assertEquals("off: the native library cannot be used", policy.toString())
            assertEquals(policy.toString(), policy.schedule())
        }
    }

    @Test
    fun `remote configuration gives the fallback`() {
        val forgiven = RetryPolicy.fromJsonOr("""{"max_attempts": 2}""", RetryPolicy.BATCH)
        assertSame(RetryPolicy.BATCH, forgiven.policy)
        assertNull(forgiven.problem)
    }

    @Test
    fun `connectivity stays unknown and nobody is woken for nothing`() {
        val connectivity = ManualConnectivity()
        var heard = 0
        connectivity.subscribe { heard++ }
        connectivity.available()
        connectivity.lost()
        connectivity.restored()
        connectivity.close()
        assertEquals(NetworkSnapshot.UNKNOWN, connectivity.snapshot)
        assertEquals(0, heard)
    }
}
