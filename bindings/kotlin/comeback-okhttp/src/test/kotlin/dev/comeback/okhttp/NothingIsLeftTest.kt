// After calls of the factory are cancelled at random nothing of them is left, and each caller has heard once.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.Connectivity
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.Subscription
import dev.comeback.driver.SystemTime
import dev.comeback.driver.Time
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Dispatcher
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.Response
import okhttp3.ResponseBody
import okio.Buffer
import okio.BufferedSource
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import java.io.IOException
import java.net.SocketException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds

internal class NothingIsLeftTest {
    /** Tasks of the timer's that have neither run nor been taken back. */
    private val tasks = AtomicInteger()
    private val listening = AtomicInteger()
    private val openResponses = AtomicInteger()
    private val attempts = AtomicInteger()
    private val waits = AtomicInteger()

    /** How many times each call's caller has heard, and the listener of its end. */
    private val heard = ConcurrentHashMap<Call, AtomicInteger>()
    private val ends = ConcurrentHashMap<Pair<Comeback, Long>, AtomicInteger>()

    private val watchedTime =
        object : Time by SystemTime {
            override fun schedule(
                until: Long,
                action: Runnable,
            ): Subscription {
                val isGone = AtomicBoolean()

                fun goes() {
                    if (isGone.compareAndSet(false, true)) tasks.decrementAndGet()
                }
                tasks.incrementAndGet()
                val scheduled =
                    SystemTime.schedule(until) {
                        goes()
                        action.run()
                    }
                return Subscription {
                    scheduled.close()
                    goes()
                }
            }
        }

    private class Counted(
        private val counted: Connectivity,
        private val listening: AtomicInteger,
    ) : Connectivity by counted {
        override fun subscribe(onChange: () -> Unit): Subscription {
            val subscription = counted.subscribe(onChange)
            val isGone = AtomicBoolean()
            listening.incrementAndGet()
            return Subscription {
                subscription.close()
                if (isGone.compareAndSet(false, true)) listening.decrementAndGet()
            }
        }
    }

    /** Half of the calls' waits last a few milliseconds, those of the others until an edge or a cancel. */
    private val quick =
        RetryPolicy {
            base = 1.milliseconds
            cap = 4.milliseconds
            attemptTimeout = 100.milliseconds
        }
    private val patient =
        RetryPolicy {
            base = 1.hours
            cap = 1.hours
            maxElapsed = 24.hours
        }

    private inner class Counting : ResponseBody() {
        private val content = Buffer()
        private val isOpen = AtomicBoolean(true)

        init {
            openResponses.incrementAndGet()
        }

        override fun contentType(): MediaType? = null

        override fun contentLength(): Long = 0

        override fun source(): BufferedSource = content

        override fun close() {
            if (isOpen.compareAndSet(true, false)) openResponses.decrementAndGet()
        }
    }

    /** A network that fails, hesitates, answers. */
    private val wire =
        Interceptor { chain ->
            val luck = attempts.incrementAndGet() % LUCK
            if (luck == 0) Thread.sleep(1)
            if (luck < 3) throw SocketException("Connection reset")
            Response
                .Builder()
                .request(chain.request())
                .protocol(Protocol.HTTP_1_1)
                .code(if (luck == 3) 200 else 503)
                .message("")
                .body(Counting())
                .build()
        }

    private val callback =
        object : Callback {
            override fun onResponse(
                call: Call,
                response: Response,
            ) {
                response.close()
                hear(call)
            }

            override fun onFailure(
                call: Call,
                e: IOException,
            ) = hear(call)
        }

    @Volatile
    private var outstanding = CountDownLatch(0)

    private fun hear(call: Call) {
        if (heard.getValue(call).incrementAndGet() == 1) outstanding.countDown()
    }

    private fun countEnds(): Comeback {
        lateinit var comeback: Comeback
        comeback =
            Comeback {
                time = watchedTime
                connectivity = Counted(network, listening)
                listener =
                    RetryListener {
                        if (it is RetryEvent.WaitPlanned) waits.incrementAndGet()
                        if (it is RetryEvent.Finished) ends.getOrPut(comeback to it.callId) { AtomicInteger() }.incrementAndGet()
                    }
            }
        return comeback
    }

    private val network = ManualConnectivity(concernsLoopback = true).apply { available() }

    @Test
    @Timeout(120)
    fun `10,000 calls cancelled at random leave nothing, and each caller hears once`() {
        val random = Random(1)
        val threads = Executors.newFixedThreadPool(THREADS)
        val dispatcher =
            Dispatcher(threads).apply {
                maxRequests = THREADS
                maxRequestsPerHost = THREADS
            }
        val client =
            OkHttpClient
                .Builder()
                .dispatcher(dispatcher)
                .addInterceptor(wire)
                .build()
        repeat(ROUNDS) { round ->
            countEnds().use { comeback ->
                val calls = comeback.callFactory(client)
                outstanding = CountDownLatch(CALLS)
                val all =
                    List(CALLS) {
                        val policy = if (random.nextBoolean()) quick else patient
                        calls.newCall(
                            Request
                                .Builder()
                                .url("http://localhost/")
                                .retryPolicy(policy)
                                .build(),
                        )
                    }
                for (call in all) heard[call] = AtomicInteger()
                // Before it starts, at once, soon, or later from another thread.
                val later = ArrayList<Call>()
                for (call in all) {
                    if (random.nextInt(16) == 0) call.cancel()
                    call.enqueue(callback)
                    if (random.nextInt(8) == 0) call.cancel()
                    if (random.nextInt(64) == 0) Thread.sleep(1)
                    if (random.nextInt(4) > 0) later += call
                }
                val cancelling =
                    thread {
                        for (call in later) call.cancel()
                    }
                network.available(round.toLong())
                // In every other round the rest is cancelled, in the others Comeback ends in the middle of it.
                if (round % 2 == 0) for (call in all) call.cancel() else comeback.close()
                cancelling.join()
                assertTrue(outstanding.await(30, TimeUnit.SECONDS), "${outstanding.count} callers have heard nothing")
            }
        }
        threads.shutdown()
        assertTrue(threads.awaitTermination(30, TimeUnit.SECONDS))
        // What was scheduled for at once has run when this has.
        CountDownLatch(1).let { drained ->
            SystemTime.schedule(Long.MIN_VALUE) { drained.countDown() }
            drained.await()
        }
        assertEquals(setOf(1), heard.values.map { it.get() }.toSet())
        assertEquals(setOf(1), ends.values.map { it.get() }.toSet())
        assertEquals(0, dispatcher.runningCallsCount() + dispatcher.queuedCallsCount())
        assertEquals(0, openResponses.get(), "open responses")
        assertEquals(0, tasks.get(), "tasks of the timer's")
        assertEquals(0, listening.get(), "subscriptions")
        assertTrue(waits.get() > CALLS, "only ${waits.get()} waits were there to be ended")
    }

    private companion object {
        const val ROUNDS = 20
        const val CALLS = 500
        const val THREADS = 8
        const val LUCK = 8
    }
}
