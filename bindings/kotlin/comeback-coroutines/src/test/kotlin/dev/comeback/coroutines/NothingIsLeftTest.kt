// After success, failure and cancellation nothing of a call is left: no coroutine, no subscription, no call without its end.
package dev.comeback.coroutines

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import kotlinx.coroutines.CoroutineExceptionHandler
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.delay
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield
import org.junit.jupiter.api.Test
import java.io.InterruptedIOException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes

class NothingIsLeftTest {
    private val connectivity = ManualConnectivity(concernsLoopback = true)
    private val watched = CountedConnectivity(connectivity)
    private val ends = ConcurrentHashMap<Long, AtomicInteger>()
    private val waiting = AtomicInteger()
    private val comeback =
        Comeback {
            connectivity = watched
            listener =
                RetryListener {
                    if (it is RetryEvent.WaitPlanned) waiting.incrementAndGet()
                    if (it is RetryEvent.Finished) ends.getOrPut(it.callId) { AtomicInteger() }.incrementAndGet()
                }
        }
    private val policy =
        RetryPolicy {
            base = 1.milliseconds
            cap = 4.milliseconds
            maxAttempts = 5
            attemptTimeout = 100.milliseconds
        }

    /** Its waits outlast any test. */
    private val patient =
        RetryPolicy {
            base = 1.hours
            cap = 1.hours
            maxElapsed = 24.hours
            jitter = Jitter.NONE
        }

    @Test
    fun `10,000 calls cancelled at random leave nothing, and each has one end`() {
        val all = SupervisorJob()
        // Calls that gave up with what their attempts threw; else the default handler prints each.
        val others = ConcurrentLinkedQueue<Throwable>()
        val gaveUp = CoroutineExceptionHandler { _, thrown -> if (thrown !is InterruptedIOException) others += thrown }
        val scope = CoroutineScope(Dispatchers.Default + all + gaveUp)
        val random = Random(1)
        val entered = AtomicInteger()
        runBlocking(Dispatchers.Default) {
            withTimeout(5.minutes) {
                repeat(20) {
                    val edges = launch { repeatEdges() }
                    val calls =
                        List(500) {
                            val succeedsAt = random.nextInt(1, 9)
                            val pause = random.nextInt(0, 3)
                            scope.launch {
                                entered.incrementAndGet()
                                comeback.retry(policy) { attempt ->
                                    if (pause > 0) delay(pause.toLong()) else yield()
                                    if (attempt.number < succeedsAt) throw lost()
                                }
                            }
                        }
                    for (call in calls) {
                        if (random.nextInt(64) == 0) delay(1)
                        call.cancel()
                    }
                    calls.joinAll()
                    edges.cancel()
                }
            }
        }
        assertEquals(emptyList(), others.toList())
        assertEquals(0, all.children.count())
        assertEquals(1, watched.listening.get(), "one for all waits of a Comeback")
        assertEquals(entered.get(), ends.size)
        assertEquals(setOf(1), ends.values.map { it.get() }.toSet())
    }

    @Test
    fun `10,000 waiting calls hear one edge`() {
        runBlocking(Dispatchers.Default) {
            withTimeout(5.minutes) {
                val calls = List(10_000) { launch { comeback.retry(patient) { if (it.number == 1) throw lost() } } }
                while (waiting.get() < calls.size) delay(1)
                connectivity.available()
                calls.joinAll()
            }
        }
        assertEquals(10_000, ends.size)
    }

    @Test
    fun `close ends every wait`() {
        runBlocking(Dispatchers.Default) {
            withTimeout(5.minutes) {
                val calls: List<Job> = List(100) { launch { runCatching { comeback.retry(patient) { throw lost() } } } }
                while (waiting.get() < calls.size) delay(1)
                comeback.close()
                calls.joinAll()
            }
        }
        assertEquals(0, watched.listening.get())
        assertEquals(100, ends.size)
    }

    private suspend fun repeatEdges() {
        var handle = 1L
        while (true) {
            connectivity.available(handle++)
            delay(20)
        }
    }
}
