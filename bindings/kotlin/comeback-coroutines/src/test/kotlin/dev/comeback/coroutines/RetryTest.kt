// retry { }: what goes again, when, and what reaches the caller; all in virtual time.
package dev.comeback.coroutines

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.Repeat
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.WaitReason
import dev.comeback.WokenBy
import dev.comeback.coroutines.RunTestFixture.Companion.STEADY
import dev.comeback.driver.CallSession
import dev.comeback.driver.Outcome
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RequestFacts
import dev.comeback.retryReport
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.runInterruptible
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runCurrent
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Test
import java.io.FileNotFoundException
import java.io.IOException
import java.io.InterruptedIOException
import java.net.UnknownHostException
import java.nio.channels.UnresolvedAddressException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

@OptIn(ExperimentalCoroutinesApi::class)
class RetryTest {
    @Test
    fun `a block goes again after the waits of its policy, and its result is returned`() =
        runTest {
            val ground = RunTestFixture(this)
            val result =
                ground.comeback.retry(STEADY) { attempt ->
                    ground.begin()
                    if (attempt.number < 4) throw lost()
                    "fine"
                }
            assertEquals("fine", result)
            assertEquals(listOf(0L, 1000, 3000, 7000), ground.began)
            assertEquals(null, ground.finished.single().reason)
        }

    @Test
    fun `a Comeback that knows nothing of the test waits in its virtual time all the same`() =
        runTest {
            Comeback().use { comeback ->
                var attempts = 0
                assertFailsWith<IOException> {
                    comeback.retry(STEADY) {
                        attempts++
                        throw lost()
                    }
                }
                assertEquals(4, attempts)
                // The real clock goes on too, a little.
                assertTrue(currentTime in 5_000..7_000, "$currentTime ms")
            }
        }

    @Test
    fun `the last exception leaves as it is, with the report and the earlier ones`() =
        runTest {
            val ground = RunTestFixture(this)
            val thrown = ArrayList<IOException>()
            val left = assertFailsWith<IOException> { ground.comeback.retry(STEADY) { throw lost().also { thrown += it } } }
            assertSame(thrown.last(), left)
            val report = assertNotNull(left.retryReport)
            assertEquals(StopReason.Attempts, report.reason)
            assertEquals(4, report.counted)
            assertEquals(thrown.dropLast(1), left.suppressed.filterIsInstance<java.net.SocketTimeoutException>())
        }

    @Test
    fun `what is no I-O error, and a local one, ends the call at once`() =
        runTest {
            val ground = RunTestFixture(this)
            for (failure in listOf(IllegalStateException(), FileNotFoundException(), object : IOException() {})) {
                var attempts = 0
                val left =
                    assertFailsWith<Exception> {
                        ground.comeback.retry(STEADY) {
                            attempts++
                            throw failure
                        }
                    }
                assertSame(failure, left)
                assertEquals(1, attempts)
                assertEquals(StopReason.Permanent, left.retryReport?.reason)
            }
        }

    @Test
    fun `an offline start is a failed look-up, whoever says it`() =
        runTest {
            val ground = RunTestFixture(this)
            for (failure in listOf(UnknownHostException(), UnresolvedAddressException())) {
                ground.events.clear()
                ground.comeback.retry(STEADY) { if (it.number == 1) throw failure }
                assertEquals(
                    FailureKind.DNS,
                    ground.events
                        .filterIsInstance<RetryEvent.AttemptFailed>()
                        .single()
                        .failure,
                )
                assertEquals(
                    WaitReason.LOOK_UP,
                    ground.events
                        .filterIsInstance<RetryEvent.WaitPlanned>()
                        .single()
                        .why,
                )
            }
        }

    @Test
    fun `a limit inside the block is the attempt's and is tried again`() =
        runTest {
            val ground = RunTestFixture(this)
            val result =
                ground.comeback.retry(STEADY) { attempt ->
                    ground.begin()
                    withTimeout(500) { if (attempt.number == 1) delay(10_000) }
                    attempt.number
                }
            assertEquals(2, result)
            assertEquals(listOf(0L, 1500), ground.began)
            assertEquals(
                FailureKind.ATTEMPT_TIMEOUT,
                ground.events
                    .filterIsInstance<RetryEvent.AttemptFailed>()
                    .single()
                    .failure,
            )
        }

    @Test
    fun `a limit around the call ends it, in a wait and in an attempt`() =
        runTest {
            for (attempt in listOf(0L, 5_000L)) {
                val ground = RunTestFixture(this)
                val start = currentTime
                assertFailsWith<kotlinx.coroutines.TimeoutCancellationException> {
                    withTimeout(500) {
                        ground.comeback.retry(STEADY) {
                            delay(attempt)
                            throw lost()
                        }
                    }
                }
                assertEquals(500, currentTime - start)
                assertEquals(
                    "cancelled(call_timeout)",
                    ground.finished
                        .single()
                        .reason
                        .toString(),
                )
            }
        }

    @Test
    fun `a cancelled coroutine ends the call at once, in a wait and in an attempt`() =
        runTest {
            for (attempt in listOf(0L, 5_000L)) {
                val ground = RunTestFixture(this)
                val call =
                    launch {
                        ground.comeback.retry(STEADY) {
                            ground.begin()
                            delay(attempt)
                            throw lost()
                        }
                    }
                advanceTimeBy(500)
                call.cancel()
                runCurrent()
                assertTrue(call.isCompleted)
                assertEquals(1, ground.began.size)
                assertEquals(
                    "cancelled(caller)",
                    ground.finished
                        .single()
                        .reason
                        .toString(),
                )
            }
        }

    @Test
    fun `a block that hides its cancellation is not tried again`() =
        runTest {
            val ground = RunTestFixture(this)
            val call =
                launch {
                    ground.comeback.retry(STEADY) {
                        ground.begin()
                        try {
                            delay(5_000)
                        } catch (_: Exception) {
                            throw lost()
                        }
                    }
                }
            advanceTimeBy(500)
            call.cancel()
            runCurrent()
            assertTrue(call.isCompleted)
            assertEquals(listOf(0L), ground.began)
        }

    @Test
    fun `the cancellation of something else leaves at once as it is`() =
        runTest {
            val ground = RunTestFixture(this)
            val other = async { delay(1_000) }
            other.cancel()
            assertFailsWith<kotlinx.coroutines.CancellationException> {
                ground.comeback.retry(STEADY) {
                    ground.begin()
                    other.await()
                }
            }
            assertEquals(listOf(0L), ground.began)
        }

    @Test
    fun `a block that blocks its thread is not ended, and what it returns is the answer, as in withTimeout`() {
        val limited = RetryPolicy(STEADY) { attemptTimeout = 100.milliseconds }
        val blocks: () -> String = {
            CountDownLatch(1).await(300, MILLISECONDS)
            "late"
        }
        Comeback().use { comeback ->
            runBlocking(Dispatchers.Default) {
                assertEquals("late", comeback.retry(limited) { blocks() })
                assertEquals("late", withTimeout(100) { blocks() })
            }
        }
    }

    @Test
    fun `one that lets itself be interrupted is ended at the limit`() {
        val once =
            RetryPolicy(STEADY) {
                maxAttempts = 1
                attemptTimeout = 100.milliseconds
            }
        Comeback().use { comeback ->
            runBlocking(Dispatchers.Default) {
                val began = TimeSource.Monotonic.markNow()
                assertFailsWith<InterruptedIOException> {
                    comeback.retry(
                        once,
                    ) { runInterruptible { CountDownLatch(1).await(20, SECONDS) } }
                }
                assertTrue(began.elapsedNow() < 10.seconds, "${began.elapsedNow()}")
            }
        }
    }

    @Test
    fun `the policy's limit of an attempt cancels that attempt alone`() =
        runTest {
            val ground = RunTestFixture(this)
            val policy = RetryPolicy(STEADY) { attemptTimeout = 2.seconds }
            var cancelled = 0
            val result =
                ground.comeback.retry(policy) { attempt ->
                    ground.begin()
                    try {
                        if (attempt.number < 3) delay(60_000)
                    } catch (cancel: kotlinx.coroutines.CancellationException) {
                        cancelled++
                        throw cancel
                    }
                    attempt.number
                }
            assertEquals(3, result)
            assertEquals(listOf(0L, 3000, 7000), ground.began)
            assertEquals(2, cancelled)
        }

    @Test
    fun `at the deadline an attempt is cut off, if the policy says so`() =
        runTest {
            val ground = RunTestFixture(this)
            val left = assertFailsWith<InterruptedIOException> { ground.comeback.retry(RetryPolicy.READ) { delay(60_000) } }
            assertEquals(20_000, currentTime)
            assertEquals(StopReason.Elapsed, left.retryReport?.reason)
        }

    @Test
    fun `an edge ends a wait at once`() =
        runTest {
            val ground = RunTestFixture(this)
            val call =
                async {
                    ground.comeback.retry(STEADY) { attempt ->
                        ground.begin()
                        if (attempt.number == 1) throw lost()
                    }
                }
            advanceTimeBy(300)
            ground.connectivity.available()
            call.await()
            assertEquals(listOf(0L, 300), ground.began)
            assertEquals(
                WokenBy.EDGE,
                ground.events
                    .filterIsInstance<RetryEvent.Resumed>()
                    .single()
                    .by,
            )
        }

    @Test
    fun `an edge between the failure and the wait is not lost`() =
        runTest {
            lateinit var ground: RunTestFixture
            ground = RunTestFixture(this) { if (it is RetryEvent.WaitPlanned) ground.connectivity.available() }
            ground.comeback.retry(STEADY) { attempt ->
                ground.begin()
                if (attempt.number == 1) throw lost()
            }
            assertEquals(listOf(0L, 0), ground.began)
        }

    @Test
    fun `known offline the first attempt is made all the same, and the next one when the network is back`() =
        runTest {
            val ground = RunTestFixture(this)
            ground.connectivity.noneAtStart()
            val policy =
                RetryPolicy(STEADY) {
                    offlineProbe = null
                    offline = dev.comeback.Offline.PARK
                }
            val call =
                async {
                    ground.comeback.retry(policy) { attempt ->
                        ground.begin()
                        if (attempt.number == 1) throw java.net.ConnectException()
                    }
                }
            advanceTimeBy(15_000)
            assertEquals(listOf(0L), ground.began)
            ground.connectivity.available()
            call.await()
            assertEquals(listOf(0L, 15_000), ground.began)
        }

    @Test
    fun `close ends a wait, and later calls go once`() =
        runTest {
            val ground = RunTestFixture(this)
            val call = async { runCatching { ground.comeback.retry(STEADY) { throw lost() } } }
            advanceTimeBy(300)
            ground.comeback.close()
            val left = assertNotNull(call.await().exceptionOrNull())
            assertEquals(300, currentTime)
            assertEquals("cancelled(closed)", left.retryReport?.reason.toString())
            val later = assertFailsWith<IOException> { ground.comeback.retry(STEADY) { throw lost() } }
            assertNull(later.retryReport)
        }

    @Test
    fun `a policy that is off lets the block run once`() =
        runTest {
            val ground = RunTestFixture(this)
            assertFailsWith<IOException> {
                ground.comeback.retry(RetryPolicy.OFF) {
                    ground.begin()
                    throw lost()
                }
            }
            assertEquals(1, ground.began.size)
            assertEquals(emptyList(), ground.events)
        }

    @Test
    fun `a classifier judges results, and a server's wait holds`() =
        runTest {
            val ground = RunTestFixture(this)
            val statuses = ArrayDeque(listOf(503, 200))
            val classifier =
                object : RetryClassifier {
                    override fun ofResult(result: Any?) = AttemptResult.status(result as Int, retryAfter = listOf("5"))
                }
            val result =
                ground.comeback.retry(STEADY, classifier) {
                    ground.begin()
                    statuses.removeFirst()
                }
            assertEquals(200, result)
            assertEquals(listOf(0L, 6000), ground.began)
        }

    @Test
    fun `a result that never became good is returned`() =
        runTest {
            val ground = RunTestFixture(this)
            val classifier =
                object : RetryClassifier {
                    override fun ofResult(result: Any?) = AttemptResult.failure(FailureKind.OTHER_IO)
                }
            var attempts = 0
            assertEquals(4, ground.comeback.retry(STEADY, classifier) { ++attempts })
            assertEquals(StopReason.Attempts, ground.finished.single().reason)
        }

    @Test
    fun `a classifier judges exceptions, and one that throws says nothing`() =
        runTest {
            val ground = RunTestFixture(this)

            class Busy : Exception()
            val classifier =
                object : RetryClassifier {
                    override fun ofException(exception: Throwable): AttemptResult? {
                        if (exception is IOException) error("a fault in the classifier")
                        return if (exception is Busy) AttemptResult.status(503) else null
                    }
                }
            val result =
                ground.comeback.retry(STEADY, classifier) { attempt ->
                    if (attempt.number == 1) throw Busy()
                    if (attempt.number == 2) throw lost()
                    attempt.number
                }
            assertEquals(3, result)
        }

    @Test
    fun `an exception that the classifier takes for the answer is not tried again`() =
        runTest {
            val ground = RunTestFixture(this)
            val classifier =
                object : RetryClassifier {
                    override fun ofException(exception: Throwable) = AttemptResult.SUCCESS
                }
            assertFailsWith<IOException> {
                ground.comeback.retry(STEADY, classifier) {
                    ground.begin()
                    throw lost()
                }
            }
            assertEquals(1, ground.began.size)
        }

    @Test
    fun `a block that must not be repeated goes again only when its failure says that nothing was sent`() =
        runTest {
            val ground = RunTestFixture(this)
            val never = RetryPolicy(STEADY) { repeat = Repeat.NEVER }
            val left = assertFailsWith<IOException> { ground.comeback.retry(never) { throw lost() } }
            assertEquals(StopReason.NotRepeatable, left.retryReport?.reason)
            assertEquals(2, ground.comeback.retry(never) { if (it.number == 1) throw java.net.ConnectException() else it.number })
        }

    @Test
    fun `what a layer that knew nothing of the block refused to repeat, the block does not repeat either`() =
        runTest {
            val ground = RunTestFixture(this)
            var blocks = 0
            val thrown =
                assertFailsWith<IOException> {
                    ground.comeback.retry(STEADY) {
                        blocks++
                        val inner = CallSession(ground.comeback, STEADY, null, RequestFacts("POST"))
                        inner.noteAttempt()
                        val failure = lost()
                        inner.failed(Outcome.failure(FailureKind.RESET, failure))
                        throw IOException(failure).also { inner.attachReportTo(failure) }
                    }
                }
            assertEquals(1, blocks)
            assertEquals(StopReason.NotRepeatable, thrown.retryReport?.reason)
        }

    @Test
    fun `one idempotency key serves all attempts of a call, and no other call`() =
        runTest {
            val ground = RunTestFixture(this)
            val keys = ArrayList<String>()
            repeat(2) {
                ground.comeback.retry(STEADY) { attempt ->
                    keys += attempt.key()
                    if (attempt.number < 3) throw lost()
                }
            }
            assertEquals(2, keys.toSet().size)
            assertEquals(keys[0], keys[2])
            assertNotEquals(keys[0], keys[3])
        }

    @Test
    fun `of two retries one inside the other the outer one acts`() =
        runTest {
            val ground = RunTestFixture(this)
            assertFailsWith<IOException> {
                ground.comeback.retry(STEADY) {
                    ground.comeback.retry(STEADY) {
                        ground.begin()
                        throw lost()
                    }
                }
            }
            assertEquals(4, ground.began.size)
            assertEquals(1, ground.finished.size)
        }

    @Test
    fun `what blocks inside the block sees the layer above, on whatever thread, and what runs outside does not`() =
        runTest {
            val ground = RunTestFixture(this)
            ground.comeback.retry(STEADY) {
                assertNotNull(OuterAttempt.onThisThread)
                withContext(Dispatchers.IO) { assertNotNull(OuterAttempt.onThisThread) }
            }
            assertNull(OuterAttempt.onThisThread)
            withContext(Dispatchers.IO) { assertNull(OuterAttempt.onThisThread) }
        }

    @Test
    fun `the label is on the call's events`() =
        runTest {
            val ground = RunTestFixture(this)
            ground.comeback.retry(STEADY, label = "user") { }
            assertEquals("user", ground.finished.single().label)
        }
}
