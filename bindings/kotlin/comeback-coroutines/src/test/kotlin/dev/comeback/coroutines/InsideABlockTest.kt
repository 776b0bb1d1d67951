// What counts as inside a block of retry { }: its own coroutines on whatever thread, and a runBlocking that blocks one of them; nobody who only borrows its thread.
package dev.comeback.coroutines

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.Jitter
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.Block
import dev.comeback.driver.CallSession
import dev.comeback.driver.Outcome
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.RequestHead
import dev.comeback.mayHaveArrived
import dev.comeback.retryReport
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.newSingleThreadContext
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.net.ConnectException
import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNotSame
import kotlin.test.assertNull
import kotlin.time.Duration.Companion.milliseconds

@OptIn(ExperimentalCoroutinesApi::class, DelicateCoroutinesApi::class)
class InsideABlockTest {
    private val app = Comeback()
    private val quick =
        RetryPolicy {
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
        }

    @AfterEach
    fun close() = app.close()

    /** How often a block that always fails runs here: once if it is inside another. */
    private suspend fun attempts(): Int {
        var attempts = 0
        assertFailsWith<IOException> {
            app.retry(quick) {
                attempts++
                throw lost()
            }
        }
        return attempts
    }

    /** What may run the block. */
    internal enum class On { DEFAULT, IO, UNCONFINED, ONE_THREAD, EVENT_LOOP }

    private fun <T> on(
        where: On,
        action: suspend CoroutineScope.() -> T,
    ): T =
        runBlocking {
            when (where) {
                On.DEFAULT -> withContext(Dispatchers.Default, action)
                On.IO -> withContext(Dispatchers.IO, action)
                On.UNCONFINED -> withContext(Dispatchers.Unconfined, action)
                On.ONE_THREAD -> newSingleThreadContext("one").use { withContext(it, action) }
                On.EVENT_LOOP -> action()
            }
        }

    @ParameterizedTest
    @EnumSource(On::class)
    internal fun `what a runBlocking inside a block runs is inside`(where: On) =
        on(where) {
            val counts =
                app.retry(quick) {
                    listOf(
                        runBlocking { attempts() },
                        runBlocking { coroutineScope { async { attempts() }.await() } },
                        runBlocking { withContext(NonCancellable) { attempts() } },
                        runBlocking { withTimeout(60_000) { attempts() } },
                        runBlocking {
                            yield()
                            attempts()
                        },
                        runBlocking { launch { assertEquals(1, attempts()) }.join() }.let { 1 },
                        runBlocking { runBlocking { attempts() } },
                    )
                }
            assertEquals(List(7) { 1 }, counts)
            assertEquals(4, attempts())
        }

    @ParameterizedTest
    @EnumSource(On::class)
    internal fun `a coroutine without a job, as other languages start one, is inside where it was started`(where: On) =
        on(where) {
            val counted =
                app.retry(quick) {
                    val result = CompletableDeferred<Int>()
                    suspend { attempts() }.startCoroutine(Continuation(EmptyCoroutineContext) { result.complete(it.getOrThrow()) })
                    result.await()
                }
            assertEquals(1, counted)
        }

    @ParameterizedTest
    @EnumSource(On::class)
    internal fun `a block's thread has its mark while the block runs on it, and not while it is suspended`(where: On) =
        on(where) {
            val isSuspended = CompletableDeferred<Unit>()
            val goOn = CompletableDeferred<Unit>()
            val block =
                launch {
                    app.retry(quick) {
                        val outer = assertNotNull(OuterAttempt.onThisThread)
                        isSuspended.complete(Unit)
                        goOn.await()
                        assertEquals(outer, OuterAttempt.onThisThread)
                        withContext(Dispatchers.IO) { assertEquals(outer, OuterAttempt.onThisThread) }
                        assertEquals(outer, OuterAttempt.onThisThread)
                        yield()
                        assertEquals(outer, OuterAttempt.onThisThread)
                    }
                    assertNull(OuterAttempt.onThisThread)
                }
            isSuspended.await()
            // The same thread, where there is only one.
            assertNull(OuterAttempt.onThisThread)
            assertEquals(4, attempts())
            goOn.complete(Unit)
            block.join()
            assertNull(OuterAttempt.onThisThread)
        }

    @Test
    fun `another coroutine that runBlocking inside a block lends its thread to is outside`() {
        var other = 0
        runBlocking {
            val isOver = CompletableDeferred<Unit>()
            launch {
                assertNotNull(OuterAttempt.onThisThread, "on the thread of the block")
                other = attempts()
                isOver.complete(Unit)
            }
            app.retry(quick) { runBlocking { isOver.await() } }
        }
        assertEquals(4, other)
    }

    @ParameterizedTest
    @EnumSource(On::class)
    internal fun `another coroutine that a block resumes, and that needs no dispatch, is outside`(where: On) =
        on(where) {
            val signal = CompletableDeferred<Unit>()
            val other =
                CoroutineScope(Dispatchers.Unconfined).async {
                    signal.await()
                    attempts()
                }
            app.retry(quick) { signal.complete(Unit) }
            assertEquals(4, other.await())
        }

    @Test
    fun `a block is not repeated after a request that may be its own and must not be`() =
        runTest {
            val ground = RunTestFixture(this)
            var blocks = 0
            val thrown =
                assertFailsWith<IOException> {
                    ground.comeback.retry(RunTestFixture.STEADY) {
                        blocks++
                        Block.tellAll(null, RequestHead("POST"))
                        throw lost()
                    }
                }
            assertEquals(1, blocks)
            assertEquals(StopReason.NotRepeatable, thrown.retryReport?.reason)
        }

    @Test
    fun `nor when that request goes out while the block waits`() =
        runTest {
            val ground = RunTestFixture(this)
            var blocks = 0
            launch {
                advanceTimeBy(500)
                Block.tellAll(null, RequestHead("POST"))
            }
            val thrown =
                assertFailsWith<IOException> {
                    ground.comeback.retry(RunTestFixture.STEADY) {
                        blocks++
                        // By itself proof that nothing has arrived.
                        throw ConnectException("Connection refused")
                    }
                }
            assertEquals(1, blocks)
            assertEquals(StopReason.NotRepeatable, thrown.retryReport?.reason)
            assertEquals(true, thrown.mayHaveArrived)
            assertEquals(false, Block.isAny)
        }

    /** How often a block runs that fails as a request with [facts] did, whose layer did not know of the block. */
    private suspend fun RunTestFixture.blocksAfter(facts: RequestFacts): Int {
        var blocks = 0
        assertFailsWith<IOException> {
            comeback.retry(RunTestFixture.STEADY) {
                blocks++
                val inner = CallSession(comeback, RetryPolicy { maxAttempts = 1 }, null, facts)
                inner.noteAttempt()
                val failure = lost()
                inner.failed(Outcome.failure(FailureKind.RESET, failure))
                throw IOException("no order", failure.also(inner::attachReportTo))
            }
        }
        return blocks
    }

    @Test
    fun `a request that went out with a key which its layer made is not sent with another`() =
        runTest {
            val ground = RunTestFixture(this)
            val keyed = RequestHead("POST", key = listOf("k"))
            assertEquals(1, ground.blocksAfter(RequestFacts(keyed, keyIsMade = true)))
            assertEquals(4, ground.blocksAfter(RequestFacts(keyed)))
            assertEquals(4, ground.blocksAfter(RequestFacts("GET")))
            assertEquals(1, ground.blocksAfter(RequestFacts("POST")))
        }

    @Test
    fun `a report is found on the copies that coroutines make of an exception, whichever it was attached to`() =
        runBlocking {
            val first =
                assertFailsWith<IOException> {
                    withContext(Dispatchers.IO) { app.retry(quick) { withContext(Dispatchers.Default) { throw IOException("lost") } } }
                }
            val original = generateSequence<Throwable>(first) { it.cause }.last()
            assertNotSame<Throwable>(original, first, "coroutines have made no copy")
            for (copy in listOf(first, original)) assertEquals(StopReason.Attempts, copy.retryReport?.reason)
        }
}
