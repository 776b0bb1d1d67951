// What one Comeback does at its beginning, at its end, and when asked about itself.
package dev.comeback

import dev.comeback.World.Companion.RESET
import dev.comeback.World.Companion.SECOND
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.SystemTime
import dev.comeback.driver.Wakeup
import dev.comeback.internal.rehearse
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertNotSame
import kotlin.test.assertSame
import kotlin.test.assertTrue

class ComebackTest {
    @Test
    fun `the library is loaded in the background, in a daemon of low priority`() {
        val done = CountDownLatch(1)
        var thread: Thread? = null
        val core =
            TestCore {
                if (it == "load") {
                    thread = Thread.currentThread()
                    done.countDown()
                }
            }
        Comeback { this.core = core }
        assertTrue(done.await(10, TimeUnit.SECONDS))
        assertNotSame(Thread.currentThread(), thread)
        assertEquals(listOf("comeback-warm-up", true, Thread.MIN_PRIORITY), listOf(thread?.name, thread?.isDaemon, thread?.priority))
        assertEquals(listOf("load"), core.calls.toList())
    }

    @Test
    fun `the warm-up has the priority of a request as soon as there is one`() {
        val (begun, goOn) = List(2) { CountDownLatch(1) }
        var thread: Thread? = null
        val core =
            TestCore {
                if (it == "load") {
                    thread = Thread.currentThread()
                    begun.countDown()
                    goOn.await()
                }
            }
        val comeback = Comeback { this.core = core }
        assertTrue(begun.await(10, TimeUnit.SECONDS))
        assertEquals(Thread.MIN_PRIORITY, thread?.priority)
        CallSession(comeback, RetryPolicy.DEFAULT, null, RequestFacts("GET")).noteAttempt()
        assertEquals(Thread.currentThread().priority, thread?.priority)
        goOn.countDown()
    }

    @Test
    fun `a library that panics while it warms up harms nobody`() {
        val done = CountDownLatch(1)
        val core =
            TestCore {
                if (it == "load") {
                    done.countDown()
                    dev.comeback.ffi.provokePanic()
                }
            }
        val heard = ArrayList<RetryEvent>()
        val comeback =
            Comeback {
                this.core = core
                listener = RetryListener { heard += it }
            }
        assertTrue(done.await(10, TimeUnit.SECONDS))
        CallSession(comeback, RetryPolicy.DEFAULT, null, RequestFacts("GET")).succeeded()
        assertIs<RetryEvent.Finished>(heard.single())
    }

    @Test
    fun `a rehearsal is a whole call that fails and is woken`() {
        val core = TestCore()
        rehearse(core)
        assertEquals(listOf("begin", "decide", "resume"), core.calls.toList())
    }

    @Test
    fun `where the library can be used the self-check passes`() {
        World().comeback.selfCheck()
    }

    @Test
    fun `a library that cannot be used is told once and thrown by the self-check`() {
        val problem = ComebackUnavailableException("libcomeback.so", "riscv64", UnsatisfiedLinkError("as if"))
        val world = World(TestCore { throw problem })
        repeat(3) {
            val session = world.session()
            assertEquals(StopReason.Internal, assertIs<NextStep.Stop>(session.failed(RESET)).reason)
        }
        val told = world.heard.filterIsInstance<RetryEvent.Unavailable>().single()
        assertEquals(listOf("libcomeback.so", "riscv64", problem.cause), listOf(told.file, told.architecture, told.cause))
        assertEquals(3, world.finals.size)
        assertSame(problem, assertFailsWith<ComebackUnavailableException> { world.comeback.selfCheck() })
    }

    @Test
    fun `closing ends a wait as cancelled`() {
        val world = World()
        val session = world.session()
        session.failed(RESET)
        world.comeback.close()
        assertEquals(StopReason.Cancelled(CancelKind.CLOSED), assertIs<NextStep.Stop>(session.woken()).reason)
        assertEquals(StopReason.Cancelled(CancelKind.CLOSED), world.finals.single().reason)
    }

    @Test
    fun `closing twice, and closing while nothing waits, does nothing`() {
        val world = World()
        world.comeback.close()
        world.comeback.close()
        assertTrue(world.comeback.isClosed)
        assertEquals(emptyList<RetryEvent>(), world.heard.toList())
    }

    @Test
    fun `closing leaves the connectivity open`() {
        val world = World()
        world.comeback.close()
        world.connectivity.available()
        assertEquals(NetworkState.ONLINE, world.connectivity.snapshot.state)
    }

    @Test
    fun `what throws while it is told of the end does not keep others from hearing`() {
        val world = World()
        var heard = 0
        repeat(10) { number ->
            world.comeback.subscribe {
                heard++
                if (number % 2 == 0) throw IllegalStateException()
            }
        }
        world.comeback.close()
        assertEquals(10, heard)
    }

    @Test
    fun `calls that race a close end once each, and none of them waits on`() {
        repeat(50) {
            val world = World(time = SystemTime)
            val hours =
                RetryPolicy(World.STEADY) {
                    maxElapsedMillis = 80_000_000
                    baseMillis = 40_000_000
                    capMillis = 40_000_000
                }
            val begin = CountDownLatch(1)
            val threads =
                List(16) {
                    inThread {
                        begin.await()
                        val session = CallSession(world.comeback, hours, null, RequestFacts("GET"))
                        val wakeup = Wakeup()
                        session.noteAttempt()
                        var step = session.failed(RESET)
                        while (step is NextStep.Sleep) {
                            session.await(step, wakeup)
                            step = session.woken()
                        }
                    }
                }
            begin.countDown()
            if (it % 2 == 0) Thread.yield()
            world.comeback.close()
            threads.forEach { thread -> thread.joinSoon() }
            assertEquals(16, world.finals.size)
            assertEquals(setOf<StopReason?>(StopReason.Cancelled(CancelKind.CLOSED)), world.finals.map { final -> final.reason }.toSet())
            assertEquals((1L..16L).toSet(), world.finals.map { final -> final.callId }.toSet())
        }
    }

    @Test
    fun `without connectivity the network's state is unknown`() {
        assertEquals(NetworkSnapshot.UNKNOWN, Comeback().snapshot)
    }

    @Test
    fun `a call's time is the one its Comeback was given`() {
        val world = World(time = TestTime(now = 7 * SECOND))
        assertEquals(7 * SECOND, world.session().began)
    }
}
