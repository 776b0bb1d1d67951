// A device on which the native library cannot be loaded: requests work once, as without Comeback, and the listener hears why.
package dev.comeback.okhttp

import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import org.junit.jupiter.api.Tag
import org.junit.jupiter.api.Test
import java.io.IOException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

@Tag("without-library")
internal class WithoutLibraryTest {
    @Test
    fun `a first-try success needs no library`() {
        val core = WatchedCore()
        LoopbackFixture(configureComeback = core::putInto).use { ground ->
            assertEquals(200, ground.client().outcomeOf(ground.request()))
            assertEquals(200, ground.client(RetryPolicy.PAYMENT).outcomeOf(ground.post { makeIdempotencyKey() }))
            assertEquals(emptyList(), core.askedBy(Thread.currentThread()))
        }
    }

    @Test
    fun `a request that fails went once, and its answer is delivered open`() =
        LoopbackFixture().use { ground ->
            ground.server.enqueue(MockResponse(code = 503, body = "busy"))
            ground.client().send(ground.request()).use { response ->
                assertEquals("busy", response.body.string())
                assertEquals(StopReason.Internal, response.retryReport!!.reason)
            }
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a failure comes out as it is`() =
        LoopbackFixture().use { ground ->
            val failure = IOException()
            val client = ground.client { addInterceptor { throw failure } }
            assertEquals(failure, assertFailsWith<IOException> { client.send(ground.request()) })
        }

    @Test
    fun `the listener hears once why`() {
        val heard = CompletableFuture<RetryEvent.Unavailable>()
        val times = AtomicInteger()
        val noting =
            RetryListener {
                if (it is RetryEvent.Unavailable) {
                    times.incrementAndGet()
                    heard.complete(it)
                }
            }
        LoopbackFixture(configureComeback = { listener = noting }).use { ground ->
            repeat(3) { ground.server.enqueue(status(503)) }
            repeat(3) { assertEquals(503, ground.client().outcomeOf(ground.request())) }
            val unavailable = heard.get(10, TimeUnit.SECONDS)
            assertContains(unavailable.file, "nonexistent")
            assertEquals(System.getProperty("os.arch"), unavailable.architecture)
            assertEquals(1, times.get())
        }
    }

    @Test
    fun `a policy that cannot be built lets requests pass`() =
        LoopbackFixture().use { ground ->
            ground.server.enqueue(status(503))
            assertEquals(503, ground.client(RetryPolicy { maxAttempts = 3 }).outcomeOf(ground.request()))
        }
}
