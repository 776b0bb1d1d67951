// How virtual time moves, and that calls retry in it without waiting.
package dev.comeback.testing

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.WokenBy
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.Wakeup
import java.util.concurrent.CompletableFuture
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNull
import kotlin.test.assertTrue

class VirtualTimeTest {
    private val time = VirtualTime()

    @Test
    fun `a wait ends at once and the clock stands at its end`() {
        assertFalse(time.await(Wakeup(), 5 * SECOND))
        assertEquals(5 * SECOND, time.nanos())
    }

    @Test
    fun `a wait for an instant that is over leaves the clock alone`() {
        time.advance(9 * SECOND)
        assertFalse(time.await(Wakeup(), SECOND))
        assertEquals(9 * SECOND, time.nanos())
    }

    @Test
    fun `a wake before the wait is used up and moves nothing`() {
        val wakeup = Wakeup()
        wakeup.wake()
        assertTrue(time.await(wakeup, SECOND))
        assertEquals(0, time.nanos())
        assertFalse(time.await(wakeup, SECOND))
    }

    @Test
    fun `the clock moves on to what is scheduled, in order, and stands still again`() {
        val seen = LinkedBlockingQueue<Pair<String, Long>>()
        // All is scheduled before anything runs.
        time.schedule(0) {
            time.schedule(4 * SECOND) { seen += "last" to time.nanos() }
            time.schedule(2 * SECOND) {
                seen += "first" to time.nanos()
                time.schedule(Long.MIN_VALUE) { seen += "at once" to time.nanos() }
            }
            time.at(3 * SECOND) { seen += "meanwhile" to time.nanos() }
        }
        assertEquals(
            listOf("first" to 2 * SECOND, "at once" to 2 * SECOND, "meanwhile" to 3 * SECOND, "last" to 4 * SECOND),
            List(4) { seen.poll(10, TimeUnit.SECONDS) },
        )
        assertEquals(4 * SECOND, time.nanos())

        val later = CompletableFuture<Long>()
        time.schedule(9 * SECOND) { later.complete(time.nanos()) }
        assertEquals(9 * SECOND, later.get(10, TimeUnit.SECONDS))
    }

    @Test
    fun `what is taken back in time does not run, and does not move the clock`() {
        val done = CompletableFuture<Long>()
        time.schedule(0) {
            val never = time.schedule(2 * SECOND) { done.complete(-1) }
            time.at(SECOND) { never.close() }
            time.schedule(SECOND) { time.schedule(Long.MIN_VALUE) { done.complete(time.nanos()) } }
        }
        assertEquals(SECOND, done.get(10, TimeUnit.SECONDS))
    }

    @Test
    fun `what happens meanwhile happens in order at its instant, and may end the wait`() {
        val wakeup = Wakeup()
        val seen = ArrayList<Pair<String, Long>>()
        time.at(3 * SECOND) {
            seen += "wake" to time.nanos()
            wakeup.wake()
        }
        time.at(SECOND) { seen += "first" to time.nanos() }
        time.at(SECOND) { seen += "second" to time.nanos() }
        time.at(4 * SECOND) { seen += "late" to time.nanos() }
        assertTrue(time.await(wakeup, 10 * SECOND))
        assertEquals(listOf("first" to SECOND, "second" to SECOND, "wake" to 3 * SECOND), seen.toList())
        assertEquals(3 * SECOND, time.nanos())
        time.advance(SECOND)
        assertEquals("late" to 4 * SECOND, seen.last())
    }

    @Test
    fun `a wake at the very end of a wait ends it as woken`() {
        val wakeup = Wakeup()
        time.at(SECOND) { wakeup.wake() }
        assertTrue(time.await(wakeup, SECOND))
    }

    @Test
    fun `time does not run backwards`() {
        assertFailsWith<IllegalArgumentException> { time.advance(-1) }
    }

    @Test
    fun `the wall clock goes on with it`() {
        assertNull(time.wallMillis())
        time.wallMillisAtZero = 784_111_777_000
        time.advance(2 * SECOND)
        assertEquals(784_111_779_000, time.wallMillis())
    }

    @Test
    fun `an interrupt ends a wait as ever`() {
        Thread.currentThread().interrupt()
        assertFailsWith<InterruptedException> { time.await(Wakeup(), SECOND) }
        assertEquals(0, time.nanos())
    }

    private class Call(
        val time: VirtualTime,
        val comeback: Comeback,
        val heard: List<RetryEvent>,
    ) {
        /** Fails every attempt. */
        fun run(): NextStep.Stop {
            val session = CallSession(comeback, RetryPolicy { jitter = Jitter.NONE }, null, RequestFacts("GET"))
            val wakeup = Wakeup()
            while (true) {
                session.noteAttempt()
                var step = session.failed(Outcome.failure(FailureKind.RESET))
                while (step is NextStep.Sleep) {
                    session.await(step, wakeup)
                    step = session.woken()
                }
                if (step is NextStep.Stop) return step
                assertIs<NextStep.Go>(step)
            }
        }
    }

    private fun call(connectivity: (VirtualTime) -> ManualConnectivity = ::ManualConnectivity): Call {
        val heard = ArrayList<RetryEvent>()
        lateinit var time: VirtualTime
        val comeback =
            Comeback {
                time = instantWaits()
                this.connectivity = connectivity(time)
                listener = RetryListener { heard += it }
            }
        return Call(time, comeback, heard)
    }

    @Test
    fun `a call makes all its attempts without waiting`() {
        val call = call()
        assertEquals(StopReason.Attempts, call.run().reason)
        assertEquals(7 * SECOND, call.time.nanos())
        assertEquals(4, call.heard.count { it is RetryEvent.AttemptFailed })
    }

    @Test
    fun `an edge in the middle of a wait ends it there`() {
        lateinit var network: ManualConnectivity
        val call = call { ManualConnectivity(it, concernsLoopback = true).also { made -> network = made } }
        call.time.at(2 * SECOND + 1) { network.restored() }
        call.run()
        val woken = call.heard.filterIsInstance<RetryEvent.Resumed>().single { it.by == WokenBy.EDGE }
        assertEquals(SECOND + 1, woken.effectiveNanos)
    }

    private companion object {
        const val SECOND = 1_000_000_000L
    }
}
