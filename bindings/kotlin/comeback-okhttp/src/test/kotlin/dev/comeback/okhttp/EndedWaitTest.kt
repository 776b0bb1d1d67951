// What ends a wait, and an attempt in flight: cancel, the client's timeout, an interrupt, the end of Comeback. Never a poll.
package dev.comeback.okhttp

import dev.comeback.CancelKind
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import dev.comeback.driver.SystemTime
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import mockwebserver3.SocketEffect.Stall
import okhttp3.Call
import okhttp3.EventListener
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.io.InterruptedIOException
import java.time.Duration
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertTrue

@ParameterizedClass
@EnumSource(Driver::class)
@Timeout(20)
internal class EndedWaitTest(
    private val driver: Driver,
) {
    private val clock = EndlessWaits()

    /** Waits of 100 ms, so that the client's timeout leaves room for one. */
    private val policy =
        RetryPolicy {
            baseMillis = 100
            capMillis = 100
            jitter = Jitter.NONE
        }

    private fun onEndlessGround(test: (LoopbackFixture) -> Unit) = LoopbackFixture(driver = driver, clock = clock).use(test)

    private fun <T> failureOf(future: CompletableFuture<T>): Throwable =
        assertFailsWith<ExecutionException> { future.get(10, TimeUnit.SECONDS) }.cause!!

    /** [end] is called while the call sleeps; milliseconds from then until it is over. */
    private fun millisUntilOver(
        future: CompletableFuture<*>,
        end: () -> Unit,
    ): Long {
        clock.waiting.acquire()
        val before = System.nanoTime()
        end()
        failureOf(future)
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - before)
    }

    private fun promptlyOnEndlessGround(tryOnce: (LoopbackFixture) -> Long) =
        clock.assertPrompt { LoopbackFixture(driver = driver, clock = clock).use(tryOnce) }

    private fun LoopbackFixture.endReason() = heard<RetryEvent.Finished>().single().reason

    @Test
    fun `a cancel ends a wait within 50 ms`() =
        promptlyOnEndlessGround { ground ->
            ground.server.enqueue(status(503))
            val call = ground.calls(policy).newCall(ground.request())
            val future = call.future()
            val millis = millisUntilOver(future) { call.cancel() }
            val failure = failureOf(future)
            assertEquals("Canceled", assertIs<IOException>(failure).message)
            assertEquals(StopReason.Cancelled(CancelKind.CALLER), failure.retryReport!!.reason)
            assertEquals(StopReason.Cancelled(CancelKind.CALLER), ground.endReason())
            assertEquals(1, ground.server.requestCount)
            millis
        }

    @Test
    fun `a cancel between failure and wait is not lost`() {
        lateinit var call: Call
        val cancelling = RetryListener { if (it is RetryEvent.WaitPlanned) call.cancel() }
        LoopbackFixture(driver = driver, clock = clock, configureComeback = { listener = cancelling }).use { ground ->
            ground.server.enqueue(status(503))
            call = ground.calls(policy).newCall(ground.request())
            assertEquals("Canceled", assertFailsWith<IOException> { call.execute() }.message)
            assertEquals(0, clock.waiting.availablePermits())
        }
    }

    @Test
    fun `the client's own timeout ends a wait within 50 ms`() =
        promptlyOnEndlessGround { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
            val timedOut = CompletableFuture<Long>()
            val listener =
                object : EventListener() {
                    override fun canceled(call: Call) {
                        timedOut.complete(System.nanoTime())
                    }
                }
            val client =
                ground.calls(policy) {
                    callTimeout(Duration.ofMillis(1_000))
                    eventListener(listener)
                }
            val began = System.nanoTime()
            val failure = assertFailsWith<InterruptedIOException> { client.send(ground.request()) }
            // The factory has no call of the client's that could hear of it while it waits.
            val ended = if (driver == Driver.INTERCEPTOR) timedOut.get() else began + TimeUnit.SECONDS.toNanos(1)
            val millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - ended)
            clock.waiting.acquire()
            assertEquals("timeout", failure.message)
            assertEquals(StopReason.Cancelled(CancelKind.CALL_TIMEOUT), ground.endReason())
            assertEquals(StopReason.Cancelled(CancelKind.CALL_TIMEOUT), failure.retryReport!!.reason)
            millis
        }

    @Test
    fun `the client's own timeout is told from a cancel, even if an interceptor outside used most of it`() =
        LoopbackFixture(driver = driver, clock = clock).use { ground ->
            ground.server.enqueue(status(503))
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .callTimeout(Duration.ofMillis(1_000))
                        .addInterceptor { chain ->
                            Thread.sleep(300)
                            chain.proceed(chain.request())
                        }.comeback(ground.comeback, policy)
                        .build(),
                )
            val failure = assertFailsWith<InterruptedIOException> { client.send(ground.request()) }
            assertEquals(StopReason.Cancelled(CancelKind.CALL_TIMEOUT), failure.retryReport!!.reason)
        }

    @Test
    fun `no wait is begun that the call's own deadline would cut short`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            val hourly =
                RetryPolicy {
                    maxElapsedMillis = TimeUnit.HOURS.toMillis(5)
                    baseMillis = TimeUnit.HOURS.toMillis(1)
                    capMillis = TimeUnit.HOURS.toMillis(1)
                    jitter = Jitter.NONE
                }
            val call = ground.calls(hourly).newCall(ground.request())
            call.timeout().deadline(30, TimeUnit.MINUTES)
            call.execute().use { assertEquals(StopReason.Elapsed, it.retryReport!!.reason) }
        }

    @Test
    fun `a timeout of the client that no clock reaches is none`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.time.advance(1)
            ground.server.enqueue(status(503))
            val call = ground.calls(policy).newCall(ground.request())
            call.timeout().timeout(Long.MAX_VALUE, TimeUnit.NANOSECONDS)
            call.execute().use { assertEquals(200, it.code) }
        }

    @Test
    fun `an interrupt ends a wait within 50 ms, and the flag is set again`() {
        assumeTrue(driver != Driver.ENQUEUED, NO_THREAD)
        promptlyOnEndlessGround { ground ->
            ground.server.enqueue(status(503))
            val client = ground.calls(policy)
            val future = CompletableFuture<Unit>()
            var isFlagSet = false
            val sleeper =
                thread {
                    try {
                        client.send(ground.request()).close()
                    } catch (failure: IOException) {
                        isFlagSet = Thread.currentThread().isInterrupted
                        future.completeExceptionally(failure)
                    }
                }
            val millis = millisUntilOver(future) { sleeper.interrupt() }
            assertIs<InterruptedIOException>(failureOf(future))
            assertTrue(isFlagSet)
            assertEquals(StopReason.Cancelled(CancelKind.INTERRUPTED), ground.endReason())
            assertEquals(1, ground.server.requestCount)
            millis
        }
    }

    @Test
    fun `closing Comeback ends a wait, and a response closed before it is not returned`() =
        promptlyOnEndlessGround { ground ->
            ground.server.enqueue(status(503, "X-Queue" to "7"))
            val future = ground.calls(policy).newCall(ground.request()).future()
            val millis = millisUntilOver(future) { ground.comeback.close() }
            val stopped = assertIs<RetryStoppedException>(failureOf(future))
            assertEquals(StopReason.Cancelled(CancelKind.CLOSED), stopped.reason)
            assertEquals(503, stopped.status)
            assertTrue("X-Queue" to "7" in stopped.headers)
            assertEquals(StopReason.Cancelled(CancelKind.CLOSED), stopped.report.reason)
            millis
        }

    @Test
    fun `after closing Comeback requests go once`() =
        LoopbackFixture(driver = driver).use { ground ->
            val client = ground.calls()
            ground.comeback.close()
            ground.server.enqueue(status(503))
            assertEquals(503, client.outcomeOf(ground.request()))
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a cancelled attempt is not retried`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(Stall).build())
            val call = ground.calls().newCall(ground.request())
            val future = call.future()
            ground.server.takeRequest()
            call.cancel()
            assertIs<IOException>(failureOf(future))
            assertEquals(StopReason.Cancelled(CancelKind.CALLER), ground.endReason())
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `an attempt that the client's timeout ended is not retried`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(Stall).build())
            val client = ground.calls { callTimeout(Duration.ofMillis(200)) }
            assertEquals("timeout", assertFailsWith<InterruptedIOException> { client.send(ground.request()) }.message)
            assertIs<StopReason.Cancelled>(ground.endReason())
            // None at all, if this machine was too slow for it.
            assertTrue(ground.server.requestCount <= 1)
            assertEquals(emptyList(), ground.heard<RetryEvent.WaitPlanned>())
        }

    @Test
    fun `an interrupted attempt is not retried, and the flag is set`() {
        assumeTrue(driver != Driver.ENQUEUED, NO_THREAD)
        LoopbackFixture(driver = driver).use { ground ->
            val client = ground.calls { addInterceptor { throw InterruptedIOException("interrupted") } }
            assertFailsWith<InterruptedIOException> { client.send(ground.request()) }
            assertTrue(Thread.interrupted())
            assertEquals(StopReason.Cancelled(CancelKind.INTERRUPTED), ground.endReason())
        }
    }

    @Test
    fun `an interrupt while a connection is made is not retried, and the flag is set`() {
        assumeTrue(driver != Driver.ENQUEUED, NO_THREAD)
        LoopbackFixture(driver = driver).use { ground ->
            // OkHttp's own call throws InterruptedException here, and the flag is gone.
            Thread.currentThread().interrupt()
            val failure = runCatching { ground.calls().send(ground.request()) }.exceptionOrNull()
            assertTrue(Thread.interrupted())
            assertIs<InterruptedIOException>(failure)
            assertEquals(StopReason.Cancelled(CancelKind.INTERRUPTED), failure.retryReport!!.reason)
            assertEquals(StopReason.Cancelled(CancelKind.INTERRUPTED), ground.endReason())
        }
    }

    @Test
    fun `Android's main thread never waits, and its response is delivered open`() {
        assumeTrue(driver != Driver.ENQUEUED, NO_THREAD)
        onEndlessGround { ground ->
            ground.server.enqueue(MockResponse(code = 503, body = "busy"))
            ground.calls(policy, configure = { isMainThread = { true } }).send(ground.request()).use { response ->
                assertEquals("busy", response.body.string())
                assertEquals(StopReason.Cancelled(CancelKind.MAIN_THREAD), response.retryReport!!.reason)
            }
        }
    }

    @Test
    fun `on Android's main thread a failure comes out at once`() {
        assumeTrue(driver != Driver.ENQUEUED, NO_THREAD)
        onEndlessGround { ground ->
            val failure = IOException()
            val client = ground.calls(policy, configure = { isMainThread = { true } }) { addInterceptor { throw failure } }
            assertEquals(failure, assertFailsWith<IOException> { client.send(ground.request()) })
            assertEquals(StopReason.Cancelled(CancelKind.MAIN_THREAD), failure.retryReport!!.reason)
        }
    }

    @Test
    fun `a policy that cuts at the deadline ends an attempt in flight, as a timeout and not as a cancel`() =
        LoopbackFixture(clock = SystemTime, driver = driver).use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(Stall).build())
            val cutting =
                RetryPolicy {
                    maxElapsedMillis = 300
                    cutAtDeadline = true
                }
            val failure = assertFailsWith<InterruptedIOException> { ground.calls(cutting).send(ground.request()) }
            assertEquals("timeout", failure.message)
            assertEquals(StopReason.Elapsed, failure.retryReport!!.reason)
            assertEquals(StopReason.Elapsed, ground.endReason())
        }

    @Test
    fun `the interceptor's cut is the deadline, even if the core's clock is behind, so no wait is planned after it`() =
        LoopbackFixture(driver = driver).use { ground ->
            assumeTrue(driver == Driver.INTERCEPTOR, "the factory can go on after a cut")
            ground.server.enqueue(MockResponse.Builder().onResponseStart(Stall).build())
            val cutting =
                RetryPolicy {
                    maxElapsedMillis = 300
                    baseMillis = 1
                    capMillis = 1
                    cutAtDeadline = true
                }
            val failure = assertFailsWith<InterruptedIOException> { ground.calls(cutting).send(ground.request()) }
            assertEquals(StopReason.Elapsed, failure.retryReport!!.reason)
            assertEquals(listOf(RetryEvent.AttemptFailed::class, RetryEvent.Finished::class), ground.events.map { it::class })
        }

    @Test
    fun `a cut request that may not be repeated says that`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(Stall).build())
            val cutting =
                RetryPolicy {
                    maxElapsedMillis = 300
                    cutAtDeadline = true
                }
            val failure = assertFailsWith<InterruptedIOException> { ground.calls(cutting).send(ground.post()) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
        }

    @Test
    fun `under such a policy a cancel is still a cancel`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(Stall).build())
            val call = ground.calls(RetryPolicy.READ).newCall(ground.request())
            val future = call.future()
            ground.server.takeRequest()
            call.cancel()
            assertEquals(StopReason.Cancelled(CancelKind.CALLER), failureOf(future).retryReport!!.reason)
        }

    @Test
    fun `the cut ends with the response head`() =
        LoopbackFixture(driver = driver).use { ground ->
            val slow =
                MockResponse
                    .Builder()
                    .body("one, two, three")
                    .throttleBody(5, 700, TimeUnit.MILLISECONDS)
                    .build()
            ground.server.enqueue(slow)
            val cutting =
                RetryPolicy {
                    maxElapsedMillis = 1_000
                    cutAtDeadline = true
                }
            ground.calls(cutting).send(ground.request()).use { assertEquals("one, two, three", it.body.string()) }
        }

    companion object {
        private const val NO_THREAD = "an enqueued call of the factory has no thread of its own"

        /** Loading the library and the first classes takes longer than the time limits here. */
        @JvmStatic
        @BeforeAll
        fun warmUp() =
            LoopbackFixture().use { ground ->
                ground.server.enqueue(status(503))
                ground.calls().send(ground.request()).close()
            }
    }
}
