// A listener or hook that blocks holds up its own call, and no other whose wait is over.
package dev.comeback.okhttp

import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.driver.SystemTime
import mockwebserver3.Dispatcher
import mockwebserver3.MockResponse
import mockwebserver3.MockWebServer
import mockwebserver3.RecordedRequest
import okhttp3.Call
import okhttp3.EventListener
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.concurrent.thread
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertTrue

@ParameterizedClass
@EnumSource(Driver::class)
@Timeout(60)
internal class SlowListenersTest(
    private val driver: Driver,
) {
    private val hours =
        RetryPolicy {
            baseMillis = 3_600_000
            capMillis = 3_600_000
            maxElapsedMillis = 36_000_000
            jitter = Jitter.NONE
        }

    /** Of each path the first request fails. */
    private class FailsFirst : Dispatcher() {
        private val seen = ConcurrentHashMap.newKeySet<String>()

        override fun dispatch(request: RecordedRequest): MockResponse =
            if (seen.add(request.url.encodedPath)) status(503) else MockResponse(body = "fine")
    }

    private fun LoopbackFixture.start(
        calls: Call.Factory,
        path: String,
    ): CompletableFuture<Int> {
        val ended = CompletableFuture<Int>()
        val call = calls.newCall(request(path = path))
        thread(isDaemon = true) {
            try {
                ended.complete(call.execute().use { it.code })
            } catch (thrown: Throwable) {
                ended.completeExceptionally(thrown)
            }
        }
        return ended
    }

    /**
     * Milliseconds from the edge until the last of nine calls has its answer, while the tenth, `/slow`, is held up by [released]. Its wait began first, so that
     * it is the first to be ended.
     */
    private fun millisBesideASlowOne(
        released: CountDownLatch,
        ground: LoopbackFixture,
        calls: Call.Factory,
    ): Long {
        ground.connectivity.available()

        fun areWaiting(count: Int) = ground.awaitUntil { ground.heard<RetryEvent.WaitPlanned>().size == count }
        val slow = ground.start(calls, "/slow").also { areWaiting(1) }
        val others = List(9) { ground.start(calls, "/$it") }.also { areWaiting(10) }
        ground.connectivity.lost()
        val edge = System.nanoTime()
        ground.connectivity.available()
        assertTrue(others.all { it.get(20, SECONDS) == 200 })
        val took = NANOSECONDS.toMillis(System.nanoTime() - edge)
        assertFalse(slow.isDone)
        released.countDown()
        assertEquals(200, slow.get(20, SECONDS))
        return took
    }

    private fun OkHttpClient.Builder.manyAtOnce() {
        dispatcher(okhttp3.Dispatcher().apply { maxRequestsPerHost = 64 })
    }

    /** A loaded machine may make one try unlucky. */
    private fun promptly(tryOnce: () -> Long) {
        val took = ArrayList<Long>()
        while (took.isEmpty() || took.last() > 100) {
            assertTrue(took.size < 5, "took $took ms")
            took += tryOnce()
        }
    }

    private fun server(): MockWebServer.() -> Unit = { dispatcher = FailsFirst() }

    @Test
    fun `one call's listener blocks at the end of its wait, and nine others have their answers within 100 ms`() =
        promptly {
            val released = CountDownLatch(1)
            lateinit var ground: LoopbackFixture
            val blocking =
                RetryListener { event ->
                    ground.events += event
                    if (event is RetryEvent.Resumed && event.label == "/slow") released.await()
                }
            ground = LoopbackFixture(server(), SystemTime, driver) { listener = blocking }
            ground.use {
                val calls = ground.calls(hours, { label = { it.url.encodedPath } }) { manyAtOnce() }
                millisBesideASlowOne(released, ground, calls)
            }
        }

    @Test
    fun `the client's event listener blocks as a later attempt is made, and nine others have their answers within 100 ms`() {
        assumeTrue(driver != Driver.INTERCEPTOR, "all attempts of the interceptor are one call of the client's, on a thread of its own")
        promptly {
            val released = CountDownLatch(1)
            val blocking =
                EventListener.Factory { call ->
                    val request = call.request()
                    if (request.attemptNumber > 1 && request.url.encodedPath == "/slow") released.await()
                    EventListener.NONE
                }
            LoopbackFixture(server(), SystemTime, driver).use { ground ->
                val calls =
                    ground.calls(hours) {
                        manyAtOnce()
                        eventListenerFactory(blocking)
                    }
                millisBesideASlowOne(released, ground, calls)
            }
        }
    }

    @Test
    fun `with an executor no call waits for the listener, which hears each call in order`() {
        val released = CountDownLatch(1)
        val heard = ConcurrentHashMap<Long, ArrayList<RetryEvent>>()
        val threads = Executors.newFixedThreadPool(3)
        val blocking =
            RetryListener { event ->
                released.await()
                heard.computeIfAbsent(event.callId) { ArrayList() } += event
            }
        try {
            LoopbackFixture(server(), SystemTime, driver) {
                listener = blocking
                listenerExecutor = threads
            }.use { ground ->
                val policy =
                    RetryPolicy {
                        baseMillis = 1
                        capMillis = 1
                    }
                val calls = ground.calls(policy) { manyAtOnce() }
                val started = List(10) { ground.start(calls, "/$it") }
                assertTrue(started.all { it.get(20, SECONDS) == 200 })
                assertTrue(heard.isEmpty())
                released.countDown()
                ground.awaitUntil { heard.values.sumOf { it.size } == 40 }
                val kinds =
                    listOf(
                        RetryEvent.AttemptFailed::class,
                        RetryEvent.WaitPlanned::class,
                        RetryEvent.Resumed::class,
                        RetryEvent.Finished::class,
                    )
                assertEquals(10, heard.size)
                for (events in heard.values) assertEquals<List<Any>>(kinds, events.map { it::class })
            }
        } finally {
            threads.shutdownNow()
        }
    }
}
