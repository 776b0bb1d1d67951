// Connections that die without a word while new ones work: after an attempt on one was ended by time no attempt begins on it, or on one as old.
package dev.comeback.okhttp

import dev.comeback.ClientResends
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.SystemTime
import mockwebserver3.Dispatcher
import mockwebserver3.MockResponse
import mockwebserver3.RecordedRequest
import okhttp3.Call
import okhttp3.OkHttpClient
import okhttp3.Protocol
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.Arguments
import org.junit.jupiter.params.provider.Arguments.arguments
import org.junit.jupiter.params.provider.MethodSource
import java.io.IOException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger
import java.util.logging.Level
import java.util.logging.Logger
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

@Timeout(120)
@ParameterizedClass
@MethodSource("all")
internal class DeadConnectionsTest(
    private val driver: Driver,
    private val protocol: Protocol,
) {
    /** How many connections lie idle when they die: HTTP/2 shares one. */
    private val idle = if (protocol == Protocol.HTTP_1_1) 5 else 1

    private val quick =
        RetryPolicy(RetryPolicy.READ) {
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
        }

    /** Answers, but on connections that have died says nothing any more. */
    private class Dying : Dispatcher() {
        private val over = CountDownLatch(1)
        private val seen = ConcurrentHashMap.newKeySet<Int>()

        @Volatile
        private var dead = emptySet<Int>()

        @Volatile
        var together = CyclicBarrier(1)

        /** By what the request's path says: how often it came in on a dead connection. */
        val lost = ConcurrentHashMap<String, AtomicInteger>()

        override fun dispatch(request: RecordedRequest): MockResponse {
            val connection = request.connectionIndex
            if (connection in dead) {
                lost.computeIfAbsent(request.url.encodedPath) { AtomicInteger() }.incrementAndGet()
                over.await()
            }
            seen += connection
            if (dead.isEmpty()) together.await(10, SECONDS)
            return MockResponse(body = "fine")
        }

        fun die() {
            dead = seen.toSet()
        }

        override fun close() = over.countDown()
    }

    private fun on(test: (LoopbackFixture, Dying) -> Unit) {
        val server = Dying()
        LoopbackFixture({
            protocols = listOf(protocol)
            dispatcher = server
        }, SystemTime, driver).use { ground ->
            try {
                test(ground, server)
            } finally {
                server.close()
            }
        }
    }

    private fun LoopbackFixture.dyingCalls(
        policy: RetryPolicy = quick,
        readTimeoutMillis: Long = 500,
        callTimeoutMillis: Long = 0,
    ): Calls =
        calls(policy) {
            protocols(listOf(protocol))
            readTimeout(readTimeoutMillis, MILLISECONDS)
            // What fills the pool has time, however busy the machine is.
            addInterceptor {
                if (it.request().url.encodedPath ==
                    "/"
                ) {
                    it.withReadTimeout(10, SECONDS).proceed(it.request())
                } else {
                    it.proceed(it.request())
                }
            }
            callTimeout(callTimeoutMillis, MILLISECONDS)
            dispatcher(okhttp3.Dispatcher().apply { maxRequests = MANY }.apply { maxRequestsPerHost = MANY })
        }

    /** So many connections lie idle then, and die. */
    private fun Dying.die(
        calls: Calls,
        ground: LoopbackFixture,
    ) {
        together = CyclicBarrier(idle)
        List(idle) { calls.newCall(ground.request { retryPolicy(RetryPolicy.OFF) }).future() }.forEach { it.get(10, SECONDS).close() }
        die()
    }

    private fun <T> OuterAttempt.block(action: () -> T): T = OuterAttempt.inside(this, action)

    private fun assertNextBeginsOnNewOne(
        calls: Call.Factory,
        ground: LoopbackFixture,
        server: Dying,
    ) {
        val before = server.lost.toString()
        assertEquals(200, calls.outcomeOf(ground.request(path = "/next")))
        assertEquals(before, server.lost.toString())
    }

    @Test
    fun `the second attempt is on a connection made after the first one failed, and so is the next call`() =
        on { ground, server ->
            val calls = ground.dyingCalls()
            server.die(calls, ground)
            val began = System.nanoTime()
            assertEquals(200, calls.outcomeOf(ground.request(path = "/first")))
            assertTrue(System.nanoTime() - began < SECONDS.toNanos(5))
            assertEquals(1, server.lost["/first"]?.get())
            assertNextBeginsOnNewOne(calls, ground, server)
        }

    @Test
    fun `an attempt that reached its own limit has suspect connections`() =
        on { ground, server ->
            val calls = ground.dyingCalls(RetryPolicy(quick) { attemptTimeout = 500.milliseconds }, readTimeoutMillis = 60_000)
            server.die(calls, ground)
            assertEquals(200, calls.outcomeOf(ground.request(path = "/first")))
            assertNextBeginsOnNewOne(calls, ground, server)
        }

    @Test
    fun `a call that was cut at its deadline leaves suspect connections`() =
        on { ground, server ->
            val calls = ground.dyingCalls(RetryPolicy(quick) { maxElapsed = 600.milliseconds }, readTimeoutMillis = 60_000)
            server.die(calls, ground)
            assertTrue(calls.outcomeOf(ground.request(path = "/first")) is IOException)
            assertEquals(StopReason.Elapsed, ground.heard<RetryEvent.Finished>().last().reason)
            assertNextBeginsOnNewOne(calls, ground, server)
        }

    @Test
    fun `a call that its client's timeout ended leaves suspect connections`() =
        on { ground, server ->
            val calls = ground.dyingCalls(readTimeoutMillis = 60_000, callTimeoutMillis = 600)
            server.die(calls, ground)
            assertTrue(calls.outcomeOf(ground.request(path = "/first")) is IOException)
            assertNextBeginsOnNewOne(calls, ground, server)
        }

    @Test
    fun `what a block sends leaves suspect connections`() =
        on { ground, server ->
            val calls = ground.dyingCalls()
            server.die(calls, ground)
            assertTrue(OuterAttempt().block { calls.outcomeOf(ground.request(path = "/first")) } is IOException)
            assertEquals(200, OuterAttempt().block { calls.outcomeOf(ground.request(path = "/first")) })
            assertNextBeginsOnNewOne(calls, ground, server)
        }

    @Test
    fun `a block that was ended by time leaves suspect connections, where a call was still waiting`() =
        on { ground, server ->
            val calls = ground.dyingCalls(readTimeoutMillis = 60_000)
            server.die(calls, ground)
            val block = OuterAttempt()
            val call = block.block { calls.newCall(ground.request(path = "/first")) }
            val hangs = call.future()
            while (server.lost["/first"] == null) Thread.sleep(1)
            block.isOutOfTime()
            assertNextBeginsOnNewOne(calls, ground, server)
            call.cancel()
            assertTrue(hangs.outcome() is IOException)
        }

    @Test
    fun `of many calls in flight over the death each makes at most one attempt on a dead connection`() =
        on { ground, server ->
            val calls = ground.dyingCalls(RetryPolicy(quick) { clientResends = ClientResends.KEEP }, readTimeoutMillis = 5_000)
            server.die(calls, ground)
            val all = List(MANY) { calls.newCall(ground.request(path = "/$it")).future() }
            all.forEachIndexed { number, call -> assertEquals(200, call.outcome(), "$number") }
            val twice = server.lost.filterValues { it.get() > 1 }
            assertEquals(emptyMap(), twice)
            assertNextBeginsOnNewOne(calls, ground, server)
        }

    private companion object {
        const val MANY = 1_000

        /** MockWebServer tells of every stream that was cancelled. */
        val quiet: Logger = Logger.getLogger(OkHttpClient::class.java.name).apply { level = Level.WARNING }

        @JvmStatic
        fun all(): List<Arguments> =
            Driver.entries.flatMap { driver -> listOf(Protocol.HTTP_1_1, Protocol.H2_PRIOR_KNOWLEDGE).map { arguments(driver, it) } }
    }
}
