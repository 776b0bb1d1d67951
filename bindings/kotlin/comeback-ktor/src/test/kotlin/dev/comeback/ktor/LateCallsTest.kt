// A request that was given up while it waited for its turn inside OkHttp does not go out later, however late OkHttp hears of its end.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import io.ktor.client.HttpClient
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.plugin
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.http.HttpMethod
import kotlinx.coroutines.CancellableContinuation
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Delay
import kotlinx.coroutines.DisposableHandle
import kotlinx.coroutines.InternalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import okhttp3.Dispatcher
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Test
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.MINUTES
import java.util.concurrent.atomic.AtomicBoolean
import kotlin.concurrent.thread
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.resume
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes

class LateCallsTest {
    private val events = CopyOnWriteArrayList<RetryEvent>()
    private val app = Comeback { listener = RetryListener { events += it } }
    private val policy =
        RetryPolicy {
            maxAttempts = 2
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
        }

    /** Whoever ends an attempt is held up once it has told the engine's coroutine, and before it tells OkHttp's call. */
    private val isHolding = AtomicBoolean()
    private val letsGo = CountDownLatch(1)

    /** An attempt ends when the test says so, not when a clock does: a busy machine would be late for it. */
    private val limits = ConcurrentLinkedQueue<Runnable>()

    @OptIn(InternalCoroutinesApi::class)
    private val holding =
        object : CoroutineDispatcher(), Delay {
            /** Its own, since nothing else must be held up. */
            private val threads = Executors.newCachedThreadPool { Thread(it).apply { isDaemon = true } }
            private val timers = Executors.newScheduledThreadPool(2) { Thread(it).apply { isDaemon = true } }

            override fun invokeOnTimeout(
                timeMillis: Long,
                block: Runnable,
                context: CoroutineContext,
            ): DisposableHandle {
                if (timeMillis == LIMIT_MILLIS) {
                    limits += block
                    return DisposableHandle { limits -= block }
                }
                return timers.schedule(block, timeMillis, MILLISECONDS).let { DisposableHandle { it.cancel(false) } }
            }

            override fun scheduleResumeAfterDelay(
                timeMillis: Long,
                continuation: CancellableContinuation<Unit>,
            ) {
                timers.schedule({ continuation.resume(Unit) }, timeMillis, MILLISECONDS)
            }

            override fun dispatch(
                context: CoroutineContext,
                block: Runnable,
            ) {
                threads.execute(block)
                if (isHolding.compareAndSet(true, false)) letsGo.await(1, MINUTES)
            }
        }
    private val calls = Dispatcher().apply { maxRequestsPerHost = 1 }
    private val client =
        HttpClient(OkHttp) {
            engine {
                dispatcher = holding
                config {
                    dispatcher(calls)
                    readTimeout(1, MINUTES)
                }
            }
            install(app.ktorPlugin) {
                policy = this@LateCallsTest.policy
                // A test adds an interceptor of its own.
                onlyThisClientSends = true
            }
        }

    private val isFree = CountDownLatch(1)

    /** The first request holds the only slot until [isFree]; a request after it is answered in a way that OkHttp repeats by itself. */
    private val server =
        ScriptedServer { number ->
            if (number == 1) isFree.await(1, MINUTES)
            status(if (number == 2) 408 else 200)
        }

    @AfterEach
    fun close() {
        isFree.countDown()
        letsGo.countDown()
        client.close()
        server.close()
        app.close()
    }

    private suspend fun waitUntil(condition: () -> Boolean) {
        while (!condition()) delay(1)
    }

    private val orders: Int get() = server.heads.count { it.startsWith("POST") }

    /** [order] waits in OkHttp's queue, is ended by [end], and the queue moves on as soon as [isEnded]. */
    private fun race(
        order: suspend () -> Unit,
        end: (Job) -> Unit = { limits.remove().run() },
        isEnded: () -> Boolean,
    ) = runBlocking {
        withTimeout(1.minutes) {
            val first = async { client.get(server.url) { retryPolicy(RetryPolicy.OFF) } }
            waitUntil { calls.runningCallsCount() == 1 }
            val call = launch(holding) { runCatching { order() } }
            waitUntil { calls.queuedCallsCount() == 1 }
            isHolding.set(true)
            // Not here: it will be held up.
            thread(isDaemon = true) { end(call) }
            waitUntil(isEnded)
            isFree.countDown()
            first.await()
            call.join()
            waitUntil { calls.queuedCallsCount() == 0 && calls.runningCallsCount() == 0 }
            letsGo.countDown()
        }
    }

    @Test
    fun `an attempt that reached its limit in OkHttp's queue is not sent beside the next one`() {
        race(
            order = {
                client.post(server.url) {
                    retryPolicy(RetryPolicy(policy) { attemptTimeout = LIMIT_MILLIS.milliseconds })
                    setBody("order")
                }
            },
            // The second attempt waits behind the first one's call.
            isEnded = { calls.queuedCallsCount() == 2 },
        )
        assertEquals(1, orders)
    }

    @Test
    fun `nor is one that a plugin's own timeout has ended`() {
        var isFirst = true
        client.plugin(HttpSend).intercept { request ->
            if (request.method != HttpMethod.Post || !isFirst) return@intercept execute(request)
            isFirst = false
            withTimeout(LIMIT_MILLIS) { execute(request) }
        }
        race(
            order = { client.post(server.url) { setBody("order") } },
            isEnded = { calls.queuedCallsCount() == 2 },
        )
        assertEquals(1, orders)
    }

    @Test
    fun `an order whose caller gave up did not arrive if that was said`() {
        race(
            order = { client.post(server.url) { setBody("order") } },
            end = { call -> call.cancel() },
            isEnded = { events.any { it is RetryEvent.Finished } },
        )
        assertFalse(events.filterIsInstance<RetryEvent.Finished>().single().mayHaveArrived)
        assertEquals(0, orders)
    }

    private companion object {
        const val LIMIT_MILLIS = 500L
    }
}
