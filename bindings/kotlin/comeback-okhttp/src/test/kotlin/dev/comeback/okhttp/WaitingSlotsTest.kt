// Calls that sleep after a status never hold a host's last slot.
package dev.comeback.okhttp

import dev.comeback.Jitter
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import mockwebserver3.Dispatcher
import mockwebserver3.MockResponse
import mockwebserver3.RecordedRequest
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.Call
import okhttp3.OkHttpClient
import okhttp3.Response
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.test.assertEquals
import kotlin.test.assertFalse

@Timeout(20)
internal class WaitingSlotsTest {
    private val clock = EndlessWaits()
    private val policy = RetryPolicy { jitter = Jitter.NONE }

    /** Answers by path, as often as it is asked. */
    private object ByPath : Dispatcher() {
        override fun dispatch(request: RecordedRequest): MockResponse =
            when (request.url.encodedPath) {
                "/busy" -> MockResponse(code = 503)
                "/lost" -> MockResponse.Builder().onResponseStart(CloseSocket()).build()
                else -> MockResponse()
            }
    }

    private fun onBusyGround(test: (LoopbackFixture) -> Unit) = LoopbackFixture({ dispatcher = ByPath }, clock).use(test)

    private fun OkHttpClient.call(
        ground: LoopbackFixture,
        path: String,
        host: String = "127.0.0.1",
    ): Call = newCall(ground.request(path = path, host = host))

    private fun CompletableFuture<Response>.done(): Response = get(10, TimeUnit.SECONDS)

    @Test
    fun `of five slots four may sleep, and a healthy request gets through`() =
        onBusyGround { ground ->
            val client = ground.client(policy)
            val sleeping = List(4) { client.call(ground, "/busy").future() }
            clock.waiting.acquire(4)

            client.call(ground, "/busy").future().done().use { response ->
                assertEquals(503, response.code)
                assertEquals(StopReason.TooManyWaiting, response.retryReport!!.reason)
            }
            client
                .call(ground, "/healthy")
                .future()
                .done()
                .use { assertEquals(200, it.code) }
            assertFalse(sleeping.any { it.isDone })
        }

    @Test
    fun `a slot comes back when its sleeper is gone`() =
        onBusyGround { ground ->
            val client = ground.client(policy) { dispatcher(okhttp3.Dispatcher().apply { maxRequestsPerHost = 2 }) }
            repeat(3) {
                val call = client.call(ground, "/busy")
                call.future()
                clock.waiting.acquire()
                client
                    .call(ground, "/busy")
                    .future()
                    .done()
                    .use { assertEquals(StopReason.TooManyWaiting, it.retryReport!!.reason) }
                call.cancel()
                while (client.dispatcher.runningCallsCount() > 0) Thread.onSpinWait()
            }
        }

    @Test
    fun `with one slot nobody sleeps`() =
        onBusyGround { ground ->
            val client = ground.client(policy) { dispatcher(okhttp3.Dispatcher().apply { maxRequestsPerHost = 1 }) }
            client
                .call(ground, "/busy")
                .future()
                .done()
                .use { assertEquals(StopReason.TooManyWaiting, it.retryReport!!.reason) }
        }

    @Test
    fun `the slots of all hosts together are not used up either`() =
        onBusyGround { ground ->
            val client =
                ground.client(policy) {
                    dispatcher(okhttp3.Dispatcher().apply { maxRequests = 3 })
                    dns { listOf(LOOPBACK) }
                }
            client.call(ground, "/busy", "one.test").future()
            client.call(ground, "/busy", "two.test").future()
            clock.waiting.acquire(2)
            client
                .call(
                    ground,
                    "/busy",
                    "three.test",
                ).future()
                .done()
                .use { assertEquals(StopReason.TooManyWaiting, it.retryReport!!.reason) }
        }

    @Test
    fun `clients that share a dispatcher share its slots`() =
        onBusyGround { ground ->
            val one = ground.client(policy) { dispatcher(okhttp3.Dispatcher().apply { maxRequestsPerHost = 2 }) }
            val other = ground.client(policy) { dispatcher(one.dispatcher) }
            one.call(ground, "/busy").future()
            clock.waiting.acquire()
            other
                .call(ground, "/busy")
                .future()
                .done()
                .use { assertEquals(StopReason.TooManyWaiting, it.retryReport!!.reason) }
        }

    @Test
    fun `a call on its caller's own thread holds no slot`() =
        onBusyGround { ground ->
            val client = ground.client(policy)
            val calls = List(7) { client.call(ground, "/busy") }
            calls.forEach { call -> thread { runCatching { call.execute() } } }
            clock.waiting.acquire(7)
            calls.forEach { it.cancel() }
        }

    @Test
    fun `calls that sleep because the network failed may all sleep`() =
        onBusyGround { ground ->
            val client = ground.client(policy)
            repeat(5) { client.call(ground, "/lost").future() }
            clock.waiting.acquire(5)
        }
}
