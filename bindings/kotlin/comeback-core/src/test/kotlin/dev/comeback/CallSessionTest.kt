// What one call's session asks, tells and answers.
package dev.comeback

import dev.comeback.World.Companion.RESET
import dev.comeback.World.Companion.SECOND
import dev.comeback.World.Companion.STEADY
import dev.comeback.driver.CallSession
import dev.comeback.driver.Limit
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.RequestHead
import dev.comeback.driver.SystemTime
import dev.comeback.driver.Wakeup
import dev.comeback.internal.NativeCore
import java.io.IOException
import java.lang.management.ManagementFactory
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CyclicBarrier
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue
import com.sun.management.ThreadMXBean as AllocationMXBean

class CallSessionTest {
    private fun NextStep.reason(): StopReason = assertIs<NextStep.Stop>(this).reason

    @Test
    fun `a success at once makes no native call`() {
        val core = TestCore()
        val world = World(core)
        world.session().succeeded()
        assertEquals(listOf(RetryEvent.Finished(1, null, null, 1, 0, true)), world.heard.toList())
        assertEquals(emptyList(), core.calls.toList())
    }

    @Test
    fun `a success at once without a listener allocates the session and no more`() {
        val comeback = Comeback(ManualConnectivity(), null, SystemTime, NativeCore)
        val facts = RequestFacts("GET")
        val threads = ManagementFactory.getThreadMXBean() as AllocationMXBean
        val thread = Thread.currentThread().id

        fun succeed(times: Int): Long {
            val before = threads.getThreadAllocatedBytes(thread)
            repeat(times) { CallSession(comeback, RetryPolicy.READ, null, facts).apply { noteAttempt() }.succeeded() }
            return threads.getThreadAllocatedBytes(thread) - before
        }
        succeed(1_000)
        val bytes = succeed(10_000) / 10_000
        assertTrue(bytes <= 160, "$bytes bytes")
    }

    @Test
    fun `a success at once has no report`() {
        val session = World().session()
        session.succeeded()
        assertNull(session.report)
    }

    @Test
    fun `the first failure begins the call and later ones do not`() {
        val core = TestCore()
        val world = World(core)
        val session = world.session()
        session.failed(RESET)
        (world.time as TestTime).now = SECOND
        session.woken()
        session.failed(RESET)
        assertEquals(listOf("begin", "decide", "resume", "decide"), core.calls.toList())
    }

    @Test
    fun `events come in order with the call's id and label`() {
        val world = World()
        val time = world.time as TestTime
        world.session().succeeded()
        val session = world.session(label = "orders")
        assertEquals(SECOND, assertIs<NextStep.Sleep>(session.failed(RESET)).askAt)
        time.now = SECOND
        assertIs<NextStep.Go>(session.woken())
        session.noteAttempt()
        time.now = 3 * SECOND
        session.succeeded()
        assertEquals(
            listOf(
                RetryEvent.AttemptFailed(2, "orders", OutcomeClass.IN_DOUBT, null, FailureKind.RESET, true),
                RetryEvent.WaitPlanned(2, "orders", SECOND, SECOND, 0, WaitReason.BACKOFF),
                RetryEvent.Resumed(2, "orders", SECOND, SECOND, WokenBy.TIMER),
                RetryEvent.Finished(2, "orders", null, 2, 3 * SECOND, true),
            ),
            world.heard.drop(1),
        )
    }

    @Test
    fun `a success after failures reports them without asking`() {
        val core = TestCore()
        val world = World(core, listening = false)
        val session = world.session()
        session.failed(Outcome.response(503))
        (world.time as TestTime).now = SECOND
        session.woken()
        core.calls.clear()
        session.succeeded()
        val report = assertNotNull(session.report)
        assertEquals("503", report.attempts.single().toString())
        assertEquals(2, report.counted)
        assertNull(report.reason)
        assertEquals(emptyList(), core.calls.toList())
    }

    @Test
    fun `a permanent status is delivered, and as a first attempt's answer without a report`() {
        val session = World().session()
        assertIs<NextStep.Deliver>(session.failed(Outcome.response(404)))
        assertNull(session.report)
    }

    @Test
    fun `the app's word on a class reaches the core`() {
        val session = World().session()
        assertIs<NextStep.Sleep>(session.failed(Outcome.response(200, overrule = OutcomeClass.TRANSIENT_STATUS)))
    }

    @Test
    fun `the caps stop a call with a reason`() {
        val world = World()
        val session = world.session(RetryPolicy { maxAttempts = 1 })
        assertEquals(StopReason.Attempts, session.failed(RESET).reason())
        assertEquals(StopReason.Attempts, session.report?.reason)
        assertEquals(
            StopReason.ServerWaitTooLong(3_600_000),
            world.session().failed(Outcome.response(503, retryAfter = listOf("3600"))).reason(),
        )
    }

    @Test
    fun `a request that may have arrived and must not arrive twice stops`() {
        val session = World().session(facts = RequestFacts("POST", hasBody = true))
        assertEquals(StopReason.NotRepeatable, session.failed(RESET).reason())
    }

    @Test
    fun `an edge during the attempt means no wait`() {
        val world = World()
        val session = world.session()
        world.connectivity.restored()
        assertEquals(0, assertIs<NextStep.Sleep>(session.failed(RESET)).askAt)
        assertIs<NextStep.Go>(session.woken())
    }

    @Test
    fun `an edge after the attempt ends the wait`() {
        val world = World()
        val session = world.session()
        session.failed(RESET)
        world.connectivity.restored()
        assertIs<NextStep.Go>(session.woken())
        assertEquals(WokenBy.EDGE, assertIs<RetryEvent.Resumed>(world.heard.last()).by)
    }

    @Test
    fun `an edge before the attempt does not end its wait`() {
        val world = World()
        world.connectivity.restored()
        val session = world.session()
        session.failed(RESET)
        assertIs<NextStep.Sleep>(session.woken())
    }

    @Test
    fun `asking early or twice makes no event`() {
        val world = World()
        val session = world.session()
        session.failed(RESET)
        val before = world.heard.size
        repeat(3) { assertIs<NextStep.Sleep>(session.woken()) }
        assertEquals(before, world.heard.size)
    }

    @Test
    fun `an attempt on a network that is gone is begun anew and told as abandoned`() {
        val world = World()
        world.connectivity.available(1)
        val session = world.session()
        assertIs<NextStep.Keep>(session.interrupted(sentNothing = true, bodyUntouched = true))
        world.connectivity.available(2)
        assertIs<NextStep.Restart>(session.interrupted(sentNothing = true, bodyUntouched = true))
        assertEquals(listOf<RetryEvent>(RetryEvent.AttemptAbandoned(1, null)), world.heard.toList())
        session.noteAttempt()
        session.succeeded()
        assertEquals(1, session.report?.abandoned)
    }

    @Test
    fun `a failure after a kept attempt is decided as ever`() {
        val session = World().session()
        assertIs<NextStep.Keep>(session.interrupted(sentNothing = false, bodyUntouched = false))
        assertIs<NextStep.Sleep>(session.failed(RESET))
    }

    @Test
    fun `the first attempt's limit is the policy's, cut by the client's own end`() {
        val world = World()
        assertSame(Limit.NONE, world.session().limit)
        val cut =
            RetryPolicy {
                maxElapsedMillis = 5_000
                cutAtDeadline = true
            }
        assertEquals(Limit.of(5 * SECOND, null), world.session(cut).limit)
        assertEquals(Limit.of(2 * SECOND, null), world.session(cut, clientEnd = 2 * SECOND).limit)
        assertEquals(Limit.of(5 * SECOND, null), world.session(cut, clientEnd = 9 * SECOND).limit)
        assertEquals(Limit.NONE, world.session(clientEnd = 2 * SECOND).limit)
        assertEquals(Limit.of(SECOND / 10, null), world.session(RetryPolicy(cut) { attemptTimeoutMillis = 100 }, clientEnd = SECOND).limit)
    }

    @Test
    fun `a cancel is the final event, with what counted so far and the time since the beginning`() {
        val world = World()
        val session = world.session()
        session.failed(RESET)
        (world.time as TestTime).now = SECOND / 2
        assertEquals(StopReason.Cancelled(CancelKind.CALLER), session.cancelled(CancelKind.CALLER).reason())
        assertEquals(
            RetryEvent.Finished(1, null, StopReason.Cancelled(CancelKind.CALLER), 1, SECOND / 2, true),
            world.heard.last(),
        )
        assertEquals("cancelled(caller)", session.report?.reason.toString())
    }

    @Test
    fun `a cancel of a first attempt is told without a native call`() {
        val core = TestCore()
        val world = World(core)
        world.session().cancelled(CancelKind.CALL_TIMEOUT)
        assertEquals(StopReason.Cancelled(CancelKind.CALL_TIMEOUT), world.finals.single().reason)
        assertEquals(0, world.finals.single().counted)
        assertEquals(emptyList(), core.calls.toList())
    }

    @Test
    fun `after the end every method answers the end and tells nothing`() {
        val ends: List<(CallSession) -> Unit> =
            listOf(
                { it.succeeded() },
                { it.failed(Outcome.response(404)) },
                { it.failed(Outcome.failure(FailureKind.CERTIFICATE)) },
                { it.cancelled(CancelKind.CALLER) },
                { it.stopped(StopReason.TooManyWaiting) },
            )
        for (end in ends) {
            val world = World()
            val session = world.session()
            end(session)
            val heard = world.heard.toList()
            val answer = session.stopped(StopReason.Internal)
            session.succeeded()
            assertSame(answer, session.failed(RESET))
            assertSame(answer, session.woken())
            assertSame(answer, session.interrupted(sentNothing = true, bodyUntouched = true))
            assertSame(answer, session.cancelled(CancelKind.CALLER))
            assertEquals(heard, world.heard.toList())
            assertEquals(1, world.finals.size)
        }
    }

    @Test
    fun `threads that race to end a call make one final event, and nothing after it`() {
        repeat(200) {
            val world = World()
            val session = world.session()
            session.failed(RESET)
            val barrier = CyclicBarrier(3)
            val racers =
                listOf<() -> Unit>(
                    { session.cancelled(CancelKind.CALLER) },
                    { session.stopped(StopReason.TooManyWaiting) },
                    { session.woken() },
                ).map { end ->
                    inThread {
                        barrier.await()
                        end()
                    }
                }
            racers.forEach { it.joinSoon() }
            assertEquals(1, world.finals.size)
            assertEquals(setOf(1L), world.heard.map { it.callId }.toSet())
            val last = checkNotNull(session.report).finished
            assertSame(world.finals.single(), last)
        }
    }

    @Test
    fun `a listener hears the end last, even if it comes while it still hears something else`() {
        val heard = CopyOnWriteArrayList<RetryEvent>()
        lateinit var session: CallSession
        val listener =
            RetryListener {
                // A cancel from another thread, which does not wait for the listener.
                if (it is RetryEvent.AttemptFailed) inThread { session.cancelled(CancelKind.CALLER) }.joinSoon()
                heard += it
            }
        val time = TestTime()
        session = CallSession(Comeback(ManualConnectivity(time), listener, time, NativeCore), STEADY, null, RequestFacts("GET"))
        assertEquals(StopReason.Cancelled(CancelKind.CALLER), session.failed(RESET).reason())
        assertEquals(listOf(RetryEvent.AttemptFailed::class, RetryEvent.Finished::class), heard.map { it::class })
        assertEquals(1, session.report?.attempts?.size)
    }

    @Test
    fun `a cancel that races a failure leaves one call with one end, and a report that knows it`() {
        val time = TestTime()
        repeat(500) {
            val world = World(time = time)
            val session = world.session()
            val barrier = CyclicBarrier(2)
            val canceller =
                inThread {
                    barrier.await()
                    session.cancelled(CancelKind.CALLER)
                }
            barrier.await()
            val step = session.failed(RESET)
            if (step is NextStep.Stop) assertEquals(step.reason, session.report?.reason)
            canceller.joinSoon()
            assertEquals(setOf(1L), world.heard.map { it.callId }.toSet())
        }
    }

    @Test
    fun `an interrupt that a listener ran into is not lost`() {
        val time = TestTime()
        val comeback = Comeback(ManualConnectivity(time), { throw InterruptedException() }, time, NativeCore)
        CallSession(comeback, STEADY, null, RequestFacts("GET")).succeeded()
        assertTrue(Thread.interrupted())
    }

    @Test
    fun `a driver that asks out of order is stopped, not thrown at`() {
        val world = World()
        assertEquals(StopReason.Internal, world.session().woken().reason())
        val session = world.session()
        session.failed(RESET)
        assertEquals(StopReason.Internal, session.failed(RESET).reason())
        assertEquals(2, world.finals.size)
    }

    @Test
    fun `a policy that is off ends a call as internal, if a driver asks after all`() {
        assertEquals(StopReason.Internal, World().session(RetryPolicy.OFF).failed(RESET).reason())
    }

    @Test
    fun `a key that one layer further in made is no caller's key to another one further in still`() {
        val outer = OuterAttempt()
        val post = RequestHead("POST", key = listOf("made"))
        outer.request(null, post, keyIsMade = true)
        outer.request(null, post, keyIsMade = false)
        val step = World().session().failed(Outcome.failure(FailureKind.RESET, inner = outer.innerRequests))
        assertEquals(StopReason.NotRepeatable, step.reason())
        outer.innerRequests.forEach { it.ended(sentNothing = true) }
        outer.request(null, RequestHead("POST", key = listOf("the caller's")), keyIsMade = false)
        assertIs<NextStep.Sleep>(World().session().failed(Outcome.failure(FailureKind.RESET, inner = outer.innerRequests)))
    }

    @Test
    fun `a block whose inner request was told to wait waits that long`() {
        val world = World()
        val outer = OuterAttempt()
        outer.request(null, RequestHead("GET"), keyIsMade = false).ended(sentNothing = false, retryAfter = listOf("3"))
        world.session().failed(Outcome.failure(FailureKind.OTHER_IO, inner = outer.innerRequests))
        val wait = world.heard.filterIsInstance<RetryEvent.WaitPlanned>().single()
        assertEquals(3 * SECOND to WaitReason.SERVER, wait.floorNanos to wait.why)
    }

    @Test
    fun `a panic in a decision stops the call and the next call works`() {
        for (question in listOf("begin", "decide")) {
            val world = World(TestCore.panickingIn(question))
            assertEquals(StopReason.Internal, world.session().failed(RESET).reason())
            // The attempt was made, though nobody could judge it.
            assertEquals(listOf<RetryEvent>(RetryEvent.Finished(1, null, StopReason.Internal, 1, 0, true)), world.heard.toList())
        }
        assertIs<NextStep.Sleep>(World().session().failed(RESET))
    }

    @Test
    fun `a panic at the end of a wait stops the call with what counted so far`() {
        val world = World(TestCore.panickingIn("resume"))
        val session = world.session()
        session.failed(RESET)
        assertEquals(StopReason.Internal, session.woken().reason())
        assertEquals(RetryEvent.Finished(1, null, StopReason.Internal, 1, 0, true), world.heard.last())
        assertEquals(StopReason.Internal, session.report?.reason)
    }

    @Test
    fun `a panic at an edge during an attempt stops the call`() {
        val world = World(TestCore.panickingIn("interrupt"))
        assertEquals(StopReason.Internal, world.session().interrupted(sentNothing = true, bodyUntouched = true).reason())
    }

    @Test
    fun `an error of the virtual machine is not contained`() {
        val world = World(TestCore { if (it == "decide") throw OutOfMemoryError("as if") })
        assertFailsWith<OutOfMemoryError> { world.session().failed(RESET) }
    }

    @Test
    fun `what a listener throws is contained, except for the virtual machine's own errors`() {
        for (thrown in listOf(IllegalStateException(), IOException(), AssertionError(), NoClassDefFoundError(), StackOverflowError())) {
            val time = TestTime()
            val comeback = Comeback(ManualConnectivity(time), { throw thrown }, time, NativeCore)
            val session = CallSession(comeback, STEADY, null, RequestFacts("GET"))
            assertIs<NextStep.Sleep>(session.failed(RESET))
            session.cancelled(CancelKind.CALLER)
            assertEquals(1, session.report?.attempts?.size)
        }
        val comeback = Comeback(ManualConnectivity(), { throw OutOfMemoryError("as if") }, TestTime(), NativeCore)
        assertFailsWith<OutOfMemoryError> { CallSession(comeback, STEADY, null, RequestFacts("GET")).succeeded() }
    }

    @Test
    fun `after an error that was not contained the listener hears what comes next`() {
        val heard = ArrayList<RetryEvent>()
        var error: Error? = OutOfMemoryError("as if")
        val listener =
            RetryListener { event ->
                error?.let { throw it }
                heard += event
            }
        val session = CallSession(Comeback(ManualConnectivity(), listener, TestTime(), NativeCore), STEADY, null, RequestFacts("GET"))
        assertFailsWith<OutOfMemoryError> { session.failed(RESET) }
        error = null
        session.cancelled(CancelKind.CALLER)
        assertIs<RetryEvent.Finished>(heard.last())
    }

    @Test
    fun `connectivity that throws counts as unknown`() {
        val broken =
            object : Connectivity {
                override val snapshot: NetworkSnapshot get() = throw IllegalStateException("snapshot")

                override fun subscribe(onChange: () -> Unit): Subscription = throw IllegalStateException("subscribe")
            }
        val comeback = Comeback(broken, null, TestTime(), NativeCore)
        val session = CallSession(comeback, STEADY, null, RequestFacts("GET"))
        assertEquals(NetworkSnapshot.UNKNOWN, session.noteAttempt())
        session.await(assertIs<NextStep.Sleep>(session.failed(RESET)), Wakeup())
        assertIs<NextStep.Go>(session.woken())
    }

    @Test
    fun `time that runs backwards does not run backwards inside a call`() {
        val time = TestTime(now = 10 * SECOND)
        val world = World(time = time)
        val session = world.session()
        time.now = 12 * SECOND
        session.failed(RESET)
        time.now = 0
        session.cancelled(CancelKind.CALLER)
        assertEquals(2 * SECOND, world.finals.single().elapsedNanos)
    }

    @Test
    fun `seeds that are not given differ`() {
        val world = World()
        val waits =
            List(50) {
                val session = CallSession(world.comeback, RetryPolicy.DEFAULT, null, RequestFacts("GET"))
                assertIs<NextStep.Sleep>(session.failed(RESET)).askAt
            }
        assertTrue(waits.toSet().size > 45, "$waits")
    }

    @Test
    fun `a wait runs to its end when nothing happens`() {
        val world = World()
        val session = world.session()
        session.await(assertIs<NextStep.Sleep>(session.failed(RESET)), Wakeup())
        assertEquals(SECOND, world.time.nanos())
        assertIs<NextStep.Go>(session.woken())
    }

    @Test
    fun `an edge, a wakeup and a close end a wait that is going on`() {
        val endings: List<(World, Wakeup) -> Unit> =
            listOf(
                { world, _ -> world.connectivity.restored() },
                { _, wakeup -> wakeup.wake() },
                { world, _ -> world.comeback.close() },
            )
        for (ending in endings) {
            val world = World(time = SystemTime)
            val session = world.session(HOURS)
            val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
            val wakeup = Wakeup()
            val thread = inThread { session.await(sleep, wakeup) }
            thread.awaitWaiting()
            ending(world, wakeup)
            thread.joinSoon()
        }
    }

    @Test
    fun `an edge, a wakeup and a close before a wait end it too`() {
        val endings: List<(World, Wakeup) -> Unit> =
            listOf(
                { world, _ -> world.connectivity.restored() },
                { _, wakeup -> wakeup.wake() },
                { world, _ -> world.comeback.close() },
            )
        for (ending in endings) {
            val world = World()
            val session = world.session()
            val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
            val wakeup = Wakeup()
            ending(world, wakeup)
            session.await(sleep, wakeup)
            assertEquals(0, world.time.nanos())
        }
    }

    @Test
    fun `a change that is no edge does not end a wait`() {
        val world = World()
        world.connectivity.available()
        val session = world.session()
        val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
        (world.time as TestTime).meanwhile = { world.connectivity.lost() }
        session.await(sleep, Wakeup())
        assertEquals(sleep.askAt, world.time.nanos())
        assertIs<NextStep.Sleep>(session.woken())
        assertEquals(WaitReason.OFFLINE, assertIs<RetryEvent.WaitPlanned>(world.heard.last()).why)
    }

    @Test
    fun `a driver's timer that ended is believed when the clock lags behind it`() {
        val session = World().session()
        val sleep = assertIs<NextStep.Sleep>(session.failed(World.RESET))
        assertIs<NextStep.Sleep>(session.woken())
        session.reached(sleep.askAt)
        assertIs<NextStep.Go>(session.woken())
        assertEquals(sleep.askAt, session.now())
    }

    @Test
    fun `a driver without a thread hears of an edge before and during its wait, and of a close`() {
        val world = World()
        val sleep = assertIs<NextStep.Sleep>(world.session().failed(World.RESET))
        var woken = 0
        world.comeback.let { comeback ->
            val session = world.session()
            session.wakeEarly(sleep) { woken++ }.use { assertEquals(0, woken) }
            session.wakeEarly(sleep) { woken++ }.use {
                world.connectivity.available()
                assertEquals(1, woken)
            }
            world.connectivity.available(handle = 2)
            assertEquals(1, woken)
            session.wakeEarly(sleep) { woken++ }.close()
            assertEquals(2, woken)
            comeback.close()
        }
    }

    @Test
    fun `a wait whose time came while the device slept ends when the clock is looked at`() {
        val time = TestTime()
        val world = World(time = time)
        val session = world.session()
        val sleep = assertIs<NextStep.Sleep>(session.failed(World.RESET))
        var woken = 0
        session.wakeEarly(sleep) { woken++ }.use {
            world.connectivity.recheck()
            assertEquals(0, woken)
            time.now = sleep.askAt
            world.connectivity.recheck()
            assertEquals(1, woken)
        }
    }

    @Test
    fun `an interrupt ends a wait`() {
        val world = World(time = SystemTime)
        val session = world.session(HOURS)
        val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
        var thrown: Throwable? = null
        val thread =
            inThread {
                thrown = runCatching { session.await(sleep, Wakeup()) }.exceptionOrNull()
            }
        thread.awaitWaiting()
        thread.interrupt()
        thread.joinSoon()
        assertIs<InterruptedException>(thrown)
    }

    @Test
    fun `the report and the failures before the last travel with the exception`() {
        val world = World()
        val session = world.session(RetryPolicy(STEADY) { maxAttempts = 2 })
        val first = IOException("first")
        val last = IOException("last")
        session.failed(Outcome.failure(FailureKind.RESET, first))
        (world.time as TestTime).now = SECOND
        session.woken()
        session.failed(Outcome.failure(FailureKind.READ_TIMEOUT, last))
        session.attachReportTo(last)
        assertEquals(listOf("reset", "read_timeout"), last.retryReport?.attempts?.map { it.toString() })
        assertContentEquals(arrayOf<Throwable>(first), last.suppressed.filterIsInstance<IOException>().toTypedArray())
    }

    private companion object {
        val HOURS =
            RetryPolicy(STEADY) {
                maxElapsedMillis = 80_000_000
                baseMillis = 40_000_000
                capMillis = 40_000_000
            }
    }
}
