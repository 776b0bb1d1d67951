// A layer further in stands down, and tells the one that acts of every request it makes.
package dev.comeback.okhttp

import dev.comeback.Repeat
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.Block
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.OuterAttempt
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Dispatcher
import okhttp3.EventListener
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.util.concurrent.AbstractExecutorService
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.ExecutionException
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals

@ParameterizedClass
@EnumSource(Driver::class)
internal class NestedLayersTest(
    private val driver: Driver,
) {
    private fun ground() = LoopbackFixture(driver = driver)

    private fun <T> OuterAttempt.block(action: () -> T): T = OuterAttempt.inside(this, action)

    /** How a call inside a block comes to know of it. */
    enum class Way {
        THREAD,
        ENQUEUED,
        REQUEST_TAG,

        /** The call object is made before the block, and enqueued in it. */
        MADE_BEFORE,

        /** Made in the block, and enqueued by another thread. */
        MADE_INSIDE,

        /** Executed by the callback of a call that was enqueued in the block. */
        CALLBACK,

        /** Enqueued by that callback. */
        CALLBACK_ENQUEUED,
    }

    private fun Way.send(
        outer: OuterAttempt,
        calls: Call.Factory,
        request: Request,
    ): Any =
        when (this) {
            Way.THREAD -> outer.block { calls.outcomeOf(request) }
            Way.ENQUEUED -> outer.block { calls.newCall(request).future() }.outcome()
            Way.REQUEST_TAG -> calls.outcomeOf(request.newBuilder().tag(OuterAttempt::class.java, outer).build())
            Way.MADE_BEFORE -> calls.newCall(request).let { call -> outer.block { call.future() }.outcome() }
            Way.MADE_INSIDE -> outer.block { calls.newCall(request) }.future().outcome()
            Way.CALLBACK -> outer.fromCallback(calls) { calls.outcomeOf(request) }
            Way.CALLBACK_ENQUEUED -> outer.fromCallback(calls) { calls.newCall(request).future() }.outcome()
        }

    /** What [action] brings in the callback of a call that was enqueued in this block. That call is not told of in the end. */
    private fun <T> OuterAttempt.fromCallback(
        calls: Call.Factory,
        action: () -> T,
    ): T {
        val result = CompletableFuture<T>()
        val first =
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) {
                    result.complete(action())
                }

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) {
                    result.complete(action())
                }
            }
        // Nobody listens there, so it is told that nothing was sent.
        block { calls.newCall(Request.Builder().url("http://127.0.0.2:1").build()).enqueue(first) }
        return result.get()
    }

    /** What was told but for the call whose callback makes the others. */
    private fun OuterAttempt.innerRequestsOf(way: Way) =
        if (way == Way.CALLBACK ||
            way == Way.CALLBACK_ENQUEUED
        ) {
            innerRequests.drop(1)
        } else {
            innerRequests
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a call inside an outer attempt goes once and is told, with what the server said of waiting`(way: Way) =
        ground().use { ground ->
            ground.server.enqueue(status(503, "Retry-After" to "7"))
            val outer = OuterAttempt()
            assertEquals(503, way.send(outer, ground.calls(), ground.post()))
            assertEquals(1, ground.server.requestCount)
            val told = outer.innerRequestsOf(way).single()
            assertEquals(false, told.sentNothing)
            assertEquals(listOf("7"), told.retryAfter)
            assertEquals(emptyList(), ground.events)
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a call that reached nobody is told so`(way: Way) =
        ground().use { ground ->
            val refused = LoopbackFixture().use { it.url() }
            val outer = OuterAttempt()
            way.send(
                outer,
                ground.calls(),
                Request
                    .Builder()
                    .url(refused)
                    .post("".toRequestBody())
                    .build(),
            )
            assertEquals(listOf(true), outer.innerRequestsOf(way).map { it.sentNothing })
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a request without a policy is told too`(way: Way) =
        ground().use { ground ->
            val outer = OuterAttempt()
            assertEquals(200, way.send(outer, ground.calls(RetryPolicy.OFF), ground.request()))
            assertEquals(1, outer.innerRequestsOf(way).size)
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `the client of a layer that stands down does not send by itself either`(way: Way) =
        ground().use { ground ->
            repeat(3) { ground.server.enqueue(status(503, "Retry-After" to "0")) }
            assertEquals(503, way.send(OuterAttempt(), ground.calls(), ground.request()))
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a call that was only enqueued may have gone out`() =
        ground().use { ground ->
            val never =
                object : AbstractExecutorService() {
                    override fun execute(command: Runnable) = Unit

                    override fun shutdown() = Unit

                    override fun shutdownNow() = emptyList<Runnable>()

                    override fun isShutdown() = false

                    override fun isTerminated() = false

                    override fun awaitTermination(
                        timeout: Long,
                        unit: TimeUnit,
                    ) = true
                }
            val outer = OuterAttempt()
            outer.block { ground.calls { dispatcher(Dispatcher(never)) }.newCall(ground.post()).future() }
            assertEquals(listOf(false), outer.innerRequests.map { it.sentNothing })
        }

    @Test
    fun `a thread of the dispatcher is inside a block no longer than the callback`() =
        ground().use { ground ->
            ground.server.enqueue(status(200))
            ground.server.enqueue(status(200))
            ground.server.enqueue(status(503))
            val outer = OuterAttempt()
            val one = Executors.newSingleThreadExecutor()
            val calls = ground.calls { dispatcher(Dispatcher(one)) }
            assertEquals(200, Way.CALLBACK_ENQUEUED.send(outer, calls, ground.request()))
            assertEquals(2, outer.innerRequests.size)
            assertEquals(null, CompletableFuture.supplyAsync({ OuterAttempt.onThisThread }, one).get())
            assertEquals(200, calls.newCall(ground.request()).future().outcome())
            assertEquals(2, outer.innerRequests.size)
        }

    /** A client whose listener was set after Comeback, so that nobody knows where a call of it was enqueued. */
    private fun LoopbackFixture.unnoted(policy: RetryPolicy = RetryPolicy.DEFAULT): OkHttpClient =
        remember(
            OkHttpClient
                .Builder()
                .comeback(comeback, policy)
                .eventListener(object : EventListener() {})
                .build(),
        )

    @Test
    fun `where nobody knows where a call was enqueued, every block in progress hears of what must not be repeated`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            Block().use { block ->
                assertEquals(
                    503,
                    ground
                        .unnoted()
                        .newCall(ground.post())
                        .future()
                        .outcome(),
                )
                assertEquals(listOf(false), block.innerRequests.map { it.sentNothing })
                assertEquals(true, block.forbidsRepetition(RetryPolicy.DEFAULT.driverFacts!!))
                assertEquals(
                    200,
                    ground
                        .unnoted(RetryPolicy.OFF)
                        .newCall(ground.post())
                        .future()
                        .outcome(),
                )
                assertEquals(2, block.innerRequests.size)
            }
        }

    @Test
    fun `such a call that reached nobody forbids nothing`() =
        ground().use { ground ->
            val refused = LoopbackFixture().use { it.url() }
            Block().use { block ->
                val request =
                    ground
                        .post()
                        .newBuilder()
                        .url(refused)
                        .build()
                ground
                    .unnoted()
                    .newCall(request)
                    .future()
                    .outcome()
                assertEquals(listOf(true), block.innerRequests.map { it.sentNothing })
                assertEquals(false, block.forbidsRepetition(RetryPolicy.DEFAULT.driverFacts!!))
            }
        }

    @Test
    fun `such a call keeps its retries, and what may be repeated concerns no block`() =
        ground().use { ground ->
            Block().use { block ->
                ground.server.enqueue(status(503))
                assertEquals(
                    200,
                    ground
                        .unnoted()
                        .newCall(ground.request())
                        .future()
                        .outcome(),
                )
                ground.server.enqueue(status(503))
                val keyed = ground.post { header(LoopbackFixture.KEY, "mine") }
                assertEquals(
                    200,
                    ground
                        .unnoted()
                        .newCall(keyed)
                        .future()
                        .outcome(),
                )
                assertEquals(emptyList<InnerRequest>(), block.innerRequests)
            }
            ground.server.enqueue(status(503))
            val making = RetryPolicy { makeKey = true }
            assertEquals(
                200,
                ground
                    .unnoted(making)
                    .newCall(ground.post())
                    .future()
                    .outcome(),
            )
        }

    @Test
    fun `a key that the layer made is another one at the block's next attempt`() =
        ground().use { ground ->
            Block().use { block ->
                ground
                    .unnoted(RetryPolicy { makeKey = true })
                    .newCall(ground.post())
                    .future()
                    .outcome()
                assertEquals(true, block.forbidsRepetition(RetryPolicy.DEFAULT.driverFacts!!))
            }
        }

    @Test
    fun `a client whose calls are noted concerns no block that it is not in`() =
        ground().use { ground ->
            Block().use { block ->
                ground
                    .calls()
                    .newCall(ground.post())
                    .future()
                    .outcome()
                assertEquals(emptyList<InnerRequest>(), block.innerRequests)
            }
        }

    @Test
    fun `what a layer refused to repeat on a thread of its own, the layer further out does not repeat either`() =
        ground().use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
            ground.server.enqueue(status(503))
            val other = ground.client()
            val calls =
                ground.calls(configure = { onlyThisClientSends = true }) {
                    addInterceptor { chain ->
                        val elsewhere = CompletableFuture.supplyAsync { other.newCall(ground.post()).execute().close() }
                        try {
                            elsewhere.get()
                        } catch (failed: ExecutionException) {
                            throw IOException("no token", failed.cause)
                        }
                        chain.proceed(chain.request())
                    }
                }
            val thrown = calls.outcomeOf(ground.request()) as IOException
            assertEquals(StopReason.NotRepeatable, thrown.retryReport?.reason)
            assertEquals(listOf("POST"), ground.received().map { it.method })
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a network interceptor that may have used another client leaves the block without proof`(way: Way) =
        ground().use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
            val other = ground.remember(OkHttpClient())
            val calls =
                ground.calls {
                    addNetworkInterceptor { chain ->
                        other.newCall(ground.post()).execute().close()
                        chain.proceed(chain.request())
                    }
                }
            val outer = OuterAttempt()
            way.send(outer, calls, ground.post())
            assertEquals(listOf(false), outer.innerRequestsOf(way).map { it.sentNothing })
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a call outside of every block is nobody's`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            val outer = OuterAttempt()
            outer.block { }
            assertEquals(
                200,
                ground
                    .calls()
                    .newCall(ground.request())
                    .future()
                    .outcome(),
            )
            assertEquals(emptyList<InnerRequest>(), outer.innerRequests)
        }

    @Test
    fun `the outer of two Comebacks on one client acts, and the inner one's word on repeating counts`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            val calls = ground.calls { comeback(ground.comeback, RetryPolicy { repeat = Repeat.NEVER }) }
            calls.send(ground.request()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(1, ground.server.requestCount)
            assertEquals(1, ground.heard<RetryEvent.Finished>().size)
        }

    @Test
    fun `what an interceptor sends by another client with Comeback is judged with the request itself`() =
        ground().use { ground ->
            ground.server.enqueue(status(200))
            ground.server.enqueue(status(503))
            val other = ground.client()
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        other.newCall(ground.post()).execute().close()
                        chain.proceed(chain.request())
                    }
                }
            calls.send(ground.request()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(listOf("POST", "GET"), ground.received().map { it.method })
        }

    @Test
    fun `what an interceptor enqueues on another client with Comeback is judged with the request itself`() =
        ground().use { ground ->
            ground.server.enqueue(status(200))
            ground.server.enqueue(status(503))
            val other = ground.client()
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        other
                            .newCall(ground.post())
                            .future()
                            .get()
                            .close()
                        chain.proceed(chain.request())
                    }
                }
            calls.send(ground.request()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(listOf("POST", "GET"), ground.received().map { it.method })
        }

    @Test
    fun `an app's own event listeners hear what they would hear without us`() =
        ground().use { ground ->
            val heard = CopyOnWriteArrayList<String>()
            val listener =
                object : EventListener() {
                    override fun callStart(call: Call) {
                        heard += "start"
                    }

                    override fun callEnd(call: Call) {
                        heard += "end"
                    }
                }
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .eventListener(listener)
                        .comeback(ground.comeback)
                        .build(),
                )
            val outer = OuterAttempt()
            assertEquals(200, outer.block { client.newCall(ground.request()).future() }.outcome())
            assertEquals(200, client.newCall(ground.request()).future().outcome())
            assertEquals(1, outer.innerRequests.size)
            assertEquals(listOf("start", "end", "start", "end"), heard)
        }
}
