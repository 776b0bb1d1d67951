// After calls are cancelled at random, with edges in between, nothing of them is left in the client.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import io.ktor.client.HttpClient
import io.ktor.client.engine.mock.MockEngine
import io.ktor.client.request.get
import kotlinx.coroutines.CoroutineExceptionHandler
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.delay
import kotlinx.coroutines.job
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Test
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes

class NothingIsLeftTest {
    @Test
    fun `10,000 requests cancelled at random leave no job, and each has one end`() {
        val network = ManualConnectivity(concernsLoopback = true)
        val ends = ConcurrentHashMap<Long, AtomicInteger>()
        val app =
            Comeback {
                connectivity = network
                listener = RetryListener { if (it is RetryEvent.Finished) ends.getOrPut(it.callId) { AtomicInteger() }.incrementAndGet() }
            }
        val quick =
            RetryPolicy {
                base = 1.milliseconds
                cap = 4.milliseconds
                attemptTimeout = 100.milliseconds
            }
        val attempts = ConcurrentLinkedQueue<Job>()
        val engine =
            MockEngine { request ->
                attempts += request.executionContext
                delay(Random.nextLong(0, 4))
                status(if (Random.nextInt(4) == 0) 200 else 503)
            }
        val client =
            HttpClient(engine) {
                install(app.ktorPlugin) {
                    policy = quick
                }
            }
        val all = SupervisorJob()
        val uncaught = ConcurrentLinkedQueue<Throwable>()
        val scope = CoroutineScope(Dispatchers.Default + all + CoroutineExceptionHandler { _, thrown -> uncaught += thrown })
        val random = Random(1)
        runBlocking(Dispatchers.Default) {
            withTimeout(5.minutes) {
                repeat(20) { round ->
                    val calls = List(500) { scope.launch { client.get("http://host/") } }
                    for (call in calls) {
                        if (random.nextInt(32) == 0) delay(1)
                        call.cancel()
                    }
                    network.available(round.toLong())
                    calls.joinAll()
                }
                while (attempts.any { it.isActive }) delay(1)
            }
        }
        // Who cancelled a call hears of nothing that it came to.
        assertEquals(emptyList(), uncaught.filter { it.retryReport?.reason is StopReason.Cancelled })
        assertEquals(0, all.children.count())
        assertEquals(
            0,
            client.coroutineContext.job.children
                .count { it.isActive },
        )
        assertEquals(setOf(1), ends.values.map { it.get() }.toSet())
        client.close()
        app.close()
    }
}
