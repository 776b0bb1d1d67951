// Calls made where nobody may wait: on Android's main thread, through a real client and a real server.
package dev.comeback.android

import android.os.Handler
import android.os.Looper
import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.coroutines.retry
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
import dev.comeback.okhttp.retryReport
import dev.comeback.retryReport
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.launch
import mockwebserver3.MockResponse
import mockwebserver3.MockWebServer
import okhttp3.Call
import okhttp3.Callback
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import org.robolectric.shadows.ShadowSystemClock
import java.io.IOException
import java.net.ConnectException
import java.net.InetAddress
import java.time.Duration
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.Executor
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicBoolean
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds

@RunWith(RobolectricTestRunner::class)
internal class MainThreadTest {
    private val server = MockWebServer()
    private val connectivity = ManualConnectivity(concernsLoopback = true)
    private val events = CopyOnWriteArrayList<RetryEvent>()
    private val comeback =
        Comeback {
            connectivity = this@MainThreadTest.connectivity
            listener = RetryListener { events += it }
        }
    private val comesBackInTheNextAttempt = AtomicBoolean()
    private val plain =
        OkHttpClient
            .Builder()
            .addNetworkInterceptor { chain ->
                chain.proceed(chain.request()).also { if (comesBackInTheNextAttempt.getAndSet(false)) connectivity.restored() }
            }.build()

    /** A wait that no test would live to see the end of. */
    private val hours =
        RetryPolicy {
            jitter = Jitter.NONE
            base = 2.hours
            cap = 2.hours
            maxElapsed = 20.hours
        }

    @Before
    fun start() {
        server.start(InetAddress.getByName("127.0.0.1"), 0)
    }

    @After
    fun end() {
        plain.dispatcher.executorService.shutdownNow()
        plain.connectionPool.evictAll()
        comeback.close()
        connectivity.close()
        server.close()
    }

    private fun request() = Request.Builder().url(server.url("/")).build()

    private fun waysToExecute(policy: RetryPolicy): Map<String, Call.Factory> =
        mapOf(
            "interceptor" to plain.newBuilder().comeback(comeback, policy).build(),
            "factory" to comeback.callFactory(plain, policy),
        )

    private fun onMainThread(action: () -> Unit) {
        assertTrue(Looper.myLooper() === Looper.getMainLooper())
        action()
    }

    @Test
    fun `after a status a call on the main thread returns what it has and says why`() {
        onMainThread {
            for ((way, calls) in waysToExecute(hours)) {
                server.enqueue(MockResponse(code = 503, body = "busy"))
                calls.newCall(request()).execute().use { response ->
                    assertEquals(way, 503, response.code)
                    assertEquals(way, "busy", response.body.string())
                    assertEquals(way, StopReason.Cancelled(CancelKind.MAIN_THREAD), response.retryReport!!.reason)
                }
            }
            assertEquals(2, server.requestCount)
        }
    }

    @Test
    fun `after a failure, and while there is no network, it throws what it has and says why`() {
        val nowhere = request()
        server.close()
        for (isOffline in listOf(false, true)) {
            if (isOffline) {
                connectivity.available(1)
                connectivity.lost(1)
            }
            onMainThread {
                for ((way, calls) in waysToExecute(hours)) {
                    val thrown = assertThrows(way, IOException::class.java) { calls.newCall(nowhere).execute() }
                    assertTrue(way, thrown is ConnectException)
                    assertEquals(way, StopReason.Cancelled(CancelKind.MAIN_THREAD), thrown.retryReport!!.reason)
                }
            }
        }
    }

    @Test
    fun `a call that need not wait goes again there`() {
        onMainThread {
            for ((way, calls) in waysToExecute(hours)) {
                val came = connectivity.snapshot.epoch
                server.enqueue(MockResponse(code = 503))
                server.enqueue(MockResponse(code = 200))
                // The edge falls into the attempt, whose failure then waits not at all.
                comesBackInTheNextAttempt.set(true)
                calls.newCall(request()).execute().use { assertEquals(way, 200, it.code) }
                assertEquals(way, came + 1, connectivity.snapshot.epoch)
            }
        }
    }

    @Test
    fun `retry suspends, and leaves the main thread to others`() {
        val short =
            RetryPolicy {
                jitter = Jitter.NONE
                base = 50.milliseconds
                cap = 50.milliseconds
            }
        val main = Handler(Looper.getMainLooper())
        val order = CopyOnWriteArrayList<String>()
        val dispatcher = Executor { main.post(it) }.asCoroutineDispatcher()
        onMainThread {
            val job =
                CoroutineScope(dispatcher).launch {
                    comeback.retry(short) { attempt ->
                        assertTrue(Looper.myLooper() === Looper.getMainLooper())
                        order += "attempt ${attempt.number}"
                        if (attempt.number == 1) {
                            main.post { order += "something else" }
                            throw ConnectException("refused")
                        }
                    }
                }
            val until = System.nanoTime() + SECONDS.toNanos(30)
            while (!job.isCompleted && System.nanoTime() < until) shadowOf(Looper.getMainLooper()).idle()
        }
        assertEquals(listOf("attempt 1", "something else", "attempt 2"), order)
    }

    @Test
    fun `a call enqueued from the main thread waits like any other`() {
        val short =
            RetryPolicy {
                jitter = Jitter.NONE
                base = 20.milliseconds
                cap = 20.milliseconds
            }
        onMainThread {
            for ((way, calls) in waysToExecute(short)) {
                server.enqueue(MockResponse(code = 503))
                server.enqueue(MockResponse(code = 200))
                val code = CompletableFuture<Int>()
                calls.newCall(request()).enqueue(
                    object : Callback {
                        override fun onResponse(
                            call: Call,
                            response: Response,
                        ) {
                            response.use { code.complete(it.code) }
                        }

                        override fun onFailure(
                            call: Call,
                            e: IOException,
                        ) {
                            code.completeExceptionally(e)
                        }
                    },
                )
                // Robolectric's clock goes on only if it is told to.
                val until = System.nanoTime() + SECONDS.toNanos(30)
                while (!code.isDone && System.nanoTime() < until) {
                    ShadowSystemClock.advanceBy(Duration.ofMillis(5))
                    orNull { code.get(5, MILLISECONDS) }
                }
                assertEquals(way, 200, code.getNow(null))
            }
        }
    }
}
