// Attempts of the factory that do not end at their limit: the caller has its answer all the same, and what they bring later does no harm.
package dev.comeback.okhttp

import dev.comeback.AttemptEndedException
import dev.comeback.FailureKind
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.SystemTime
import dev.comeback.retryReport
import mockwebserver3.Dispatcher
import mockwebserver3.MockResponse
import mockwebserver3.RecordedRequest
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.RequestBody
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okhttp3.ResponseBody
import okio.Buffer
import okio.BufferedSink
import okio.BufferedSource
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import java.io.IOException
import java.net.Socket
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

@Timeout(60)
internal class LeftAloneTest {
    /** The first connection hangs until [release], whatever becomes of its call: without fast fallback nothing ends a socket factory. */
    private class HangingSockets : UnconnectedSockets() {
        private val made = AtomicInteger()
        val release = CountDownLatch(1)
        val isBack = CountDownLatch(1)

        override fun createSocket(): Socket {
            if (made.incrementAndGet() == 1) {
                release.await()
                isBack.countDown()
            }
            return Socket()
        }
    }

    private fun policy(attempts: Int) =
        RetryPolicy {
            attemptTimeout = 150.milliseconds
            base = 1.milliseconds
            cap = 1.milliseconds
            maxAttempts = attempts
        }

    private fun fixture() = LoopbackFixture(clock = SystemTime, driver = Driver.ENQUEUED)

    @Test
    fun `a POST whose connect hangs goes out once, with the next attempt, and not when the connect comes back`() {
        fixture().use { fixture ->
            val sockets = HangingSockets()
            val factory = fixture.factory(policy(8)) { fastFallback(false).socketFactory(sockets) }
            assertEquals(200, factory.newCall(fixture.post()).future().outcome())
            sockets.release.countDown()
            sockets.isBack.await()
            Thread.sleep(100)
            assertEquals(1, fixture.server.requestCount)
        }
    }

    @Test
    fun `a POST that is left alone in a network interceptor, which may have sent it elsewhere, does not go again`() {
        fixture().use { fixture ->
            val release = CountDownLatch(1)
            val other = fixture.remember(OkHttpClient())
            val mirrors =
                Interceptor { chain ->
                    other.newCall(fixture.post()).execute().close()
                    release.await()
                    chain.proceed(chain.request())
                }
            val future = fixture.factory(policy(3)) { addNetworkInterceptor(mirrors) }.newCall(fixture.post()).future()
            val failure = assertIs<IOException>(future.outcome())
            assertEquals(true, failure.retryReport?.mayHaveArrived)
            release.countDown()
            Thread.sleep(100)
            assertEquals(1, fixture.server.requestCount)
        }
    }

    @Test
    fun `what an interceptor that was left alone sends by another client with Comeback does not arrive beside the next attempt's`() {
        fixture().use { fixture ->
            val release = CountDownLatch(1)
            val attempts = AtomicInteger()
            val late = CompletableFuture<Any>()
            val other = fixture.client()
            val orders =
                Interceptor { chain ->
                    if (attempts.incrementAndGet() == 1) {
                        release.await()
                        late.complete(other.outcomeOf(fixture.post()))
                        throw IOException("too late")
                    }
                    other.newCall(fixture.post()).execute().close()
                    chain.proceed(chain.request())
                }
            val limited = RetryPolicy(policy(2)) { attemptTimeout = 500.milliseconds }
            assertEquals(
                200,
                fixture
                    .factory(limited) { addInterceptor(orders) }
                    .newCall(fixture.request())
                    .future()
                    .outcome(),
            )
            release.countDown()
            assertIs<AttemptEndedException>(late.get(10, TimeUnit.SECONDS))
            assertEquals(listOf("POST", "GET"), fixture.received().map { it.method })
        }
    }

    @Test
    fun `a call whose connect hangs has its answer at its call timeout, and when it is cancelled`() {
        fixture().use { fixture ->
            for (isCancelled in listOf(false, true)) {
                val sockets = HangingSockets()
                val factory =
                    fixture.factory {
                        fastFallback(
                            false,
                        ).socketFactory(sockets).callTimeout(if (isCancelled) 0 else 150, TimeUnit.MILLISECONDS)
                    }
                val call = factory.newCall(fixture.post())
                val future = call.future()
                if (isCancelled) {
                    Thread.sleep(50)
                    call.cancel()
                }
                val failure = assertIs<IOException>(future.outcome())
                assertEquals(if (isCancelled) "Canceled" else "timeout", failure.message)
                assertEquals(false, failure.retryReport?.mayHaveArrived)
                assertTrue(call.isCanceled())
                sockets.release.countDown()
            }
            assertEquals(0, fixture.server.requestCount)
        }
    }

    @Test
    fun `a body that is still being written is not written by another attempt beside it`() {
        fixture().use { fixture ->
            val release = CountDownLatch(1)
            val writers = AtomicInteger()
            val body =
                object : RequestBody() {
                    override fun contentType(): MediaType? = null

                    override fun writeTo(sink: BufferedSink) {
                        writers.incrementAndGet()
                        release.await()
                        sink.writeUtf8("late")
                    }
                }
            val failure =
                assertIs<IOException>(
                    fixture
                        .factory(policy(3))
                        .newCall(fixture.request("PUT", body))
                        .future()
                        .outcome(),
                )
            assertEquals(1, writers.get())
            release.countDown()
            // The server can count that attempt, so the report does.
            val report = failure.retryReport!!
            assertEquals(StopReason.BodyNotReplayable, report.reason)
            assertEquals(1, report.counted)
            assertTrue(report.mayHaveArrived)
            assertEquals(FailureKind.ATTEMPT_TIMEOUT to OutcomeClass.IN_DOUBT, report.attempts.single().run { this.failure to outcome })
            assertEquals(listOf(RetryEvent.AttemptFailed::class, RetryEvent.Finished::class), fixture.events.map { it::class })
        }
    }

    @Test
    fun `an answer that comes after its attempt was left alone is closed`() {
        fixture().use { fixture ->
            val isOpen = AtomicBoolean(true)
            val release = CountDownLatch(1)
            val late =
                object : ResponseBody() {
                    override fun contentType(): MediaType? = null

                    override fun contentLength(): Long = 0

                    override fun source(): BufferedSource = Buffer()

                    override fun close() = isOpen.set(false)
                }
            val stubborn =
                Interceptor { chain ->
                    if (chain.request().attemptNumber > 1) return@Interceptor chain.proceed(chain.request())
                    release.await()
                    Response
                        .Builder()
                        .request(chain.request())
                        .protocol(Protocol.HTTP_1_1)
                        .code(200)
                        .message("")
                        .body(late)
                        .build()
                }
            val factory = fixture.factory(policy(8)) { addInterceptor(stubborn) }
            assertEquals(200, factory.newCall(fixture.request()).future().outcome())
            assertTrue(isOpen.get())
            release.countDown()
            fixture.awaitUntil { !isOpen.get() }
        }
    }

    @Test
    fun `a later attempt that finds no slot, because others do not come back, ends at its limit and never runs`() {
        fixture().use { fixture ->
            val connects = AtomicInteger()
            val release = CountDownLatch(1)
            val allHang =
                object : UnconnectedSockets() {
                    override fun createSocket(): Socket {
                        connects.incrementAndGet()
                        release.await()
                        return Socket()
                    }
                }
            val factory =
                fixture.factory(policy(3)) {
                    fastFallback(false).socketFactory(allHang).dispatcher(okhttp3.Dispatcher().apply { maxRequestsPerHost = 1 })
                }
            val began = System.nanoTime()
            val failure = assertIs<IOException>(factory.newCall(fixture.post()).future().outcome())
            assertEquals(StopReason.Attempts, failure.retryReport?.reason)
            assertEquals(3, failure.retryReport?.counted)
            assertFalse(failure.retryReport!!.mayHaveArrived)
            assertTrue(System.nanoTime() - began < 3_000_000_000)
            assertEquals(1, connects.get())
            release.countDown()
            Thread.sleep(100)
            assertEquals(0, fixture.server.requestCount)
        }
    }

    @Test
    fun `POSTs whose connects come back just as they are left alone arrive once at most`() {
        val arrived = ConcurrentHashMap<String, AtomicInteger>()
        val counting =
            object : Dispatcher() {
                override fun dispatch(request: RecordedRequest): MockResponse {
                    arrived.getOrPut(request.headers["Order"]!!) { AtomicInteger() }.incrementAndGet()
                    return MockResponse(body = "fine")
                }
            }
        LoopbackFixture({ dispatcher = counting }, clock = SystemTime, driver = Driver.ENQUEUED).use { fixture ->
            val random = Random(11)
            val slow =
                object : UnconnectedSockets() {
                    override fun createSocket(): Socket {
                        Thread.sleep(synchronized(random) { random.nextLong(100, 240) })
                        return Socket()
                    }
                }
            val factory =
                fixture.factory(policy(4)) {
                    dns { listOf(LOOPBACK) }.fastFallback(false).socketFactory(slow).dispatcher(
                        okhttp3.Dispatcher(Executors.newCachedThreadPool()).apply {
                            maxRequestsPerHost =
                                64
                        },
                    )
                }
            val outcomes =
                List(CALLS) { number ->
                    // A host each, so that no connection is there already.
                    val request = fixture.post("order".toRequestBody(), host = "shop$number.test") { header("Order", "$number") }
                    if (number % 16 == 0) Thread.sleep(20)
                    factory.newCall(request).future()
                }.map { it.outcome() }
            Thread.sleep(300)
            val served = outcomes.count { it == 200 }
            for ((order, times) in arrived) assertEquals(1, times.get(), "order $order")
            for ((number, outcome) in outcomes.withIndex()) {
                if (outcome == 200) assertEquals(1, arrived["$number"]?.get())
                val report = (outcome as? IOException)?.retryReport ?: continue
                if (arrived["$number"] !=
                    null
                ) {
                    assertTrue(report.mayHaveArrived, "order $number arrived, and the report says it cannot have")
                }
            }
            println("$served of $CALLS served, ${arrived.size} arrived")
            assertTrue(served in 1..CALLS)
        }
    }

    private companion object {
        const val CALLS = 320
    }
}
