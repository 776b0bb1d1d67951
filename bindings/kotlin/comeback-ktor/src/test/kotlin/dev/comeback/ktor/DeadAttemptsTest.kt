// A block that ignores its cancellation goes on after its attempt has ended. What it sends then must not arrive beside what the next attempt sends.
package dev.comeback.ktor

import dev.comeback.AttemptEndedException
import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.Repeat
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.Attempt
import dev.comeback.coroutines.retry
import dev.comeback.mayHaveArrived
import dev.comeback.okhttp.await
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.request.header
import io.ktor.client.request.request
import io.ktor.http.HttpMethod
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.async
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.future.asCompletableFuture
import kotlinx.coroutines.future.await
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import mockwebserver3.Dispatcher
import mockwebserver3.MockResponse
import mockwebserver3.MockWebServer
import mockwebserver3.RecordedRequest
import okhttp3.Call
import okhttp3.Callback
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.net.ServerSocket
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

internal class DeadAttemptsTest {
    private val app = Comeback()
    private val policy =
        RetryPolicy {
            maxAttempts = 2
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
        }

    /** The first call of the first attempt has its answer only then. */
    private val isOver = CountDownLatch(1)
    private val arrived = CopyOnWriteArrayList<String>()
    private val server =
        MockWebServer().apply {
            dispatcher =
                object : Dispatcher() {
                    override fun dispatch(request: RecordedRequest): MockResponse {
                        arrived += "${request.method} ${request.url.encodedPath}"
                        if (request.url.encodedPath == "/first") isOver.await(10, SECONDS)
                        return MockResponse()
                    }
                }
            start()
        }
    private val intercepted = OkHttpClient.Builder().comeback(app, policy).build()
    private val factory = app.callFactory(OkHttpClient(), policy)
    private val ktorOnOkHttp = HttpClient(OkHttp) { install(app.ktorPlugin) }
    private val ktorOnCio = HttpClient(CIO) { install(app.ktorPlugin) }

    @AfterEach
    fun close() {
        isOver.countDown()
        ktorOnOkHttp.close()
        ktorOnCio.close()
        server.close()
        app.close()
    }

    /** How the block's first call is made, and what its callback sends. */
    enum class Way {
        INTERCEPTOR,
        INTERCEPTOR_ENQUEUED,
        FACTORY,
        FACTORY_ENQUEUED,
        KTOR_ON_OKHTTP,
        KTOR_ON_CIO,

        /** Of a factory's call that was enqueued. */
        FACTORY_IN_FACTORYS,
        KTOR_IN_FACTORYS,

        /** Made while the block runs, and enqueued when it is over. */
        MADE_INSIDE,
        MADE_INSIDE_BY_FACTORY,

        /** From a coroutine that has the block's context, but not its job. */
        KTOR_LEFT_BEHIND,
        INTERCEPTOR_LEFT_BEHIND,
        FACTORY_LEFT_BEHIND,

        /** The same, which waited without a thread. */
        INTERCEPTOR_LEFT_SUSPENDED,
        FACTORY_LEFT_SUSPENDED,
    }

    private class Order(
        val method: String = "POST",
        val key: String? = null,
    )

    private fun request(order: Order): Request =
        Request
            .Builder()
            .url(server.url("/order"))
            .method(order.method, if (order.method == "GET") null else "order".toRequestBody())
            .apply { if (order.key != null) header("Idempotency-Key", order.key) }
            .build()

    private fun first(calls: Call.Factory): Call = calls.newCall(Request.Builder().url(server.url("/first")).build())

    private suspend fun HttpClient.send(order: Order) {
        request(server.url("/order").toString()) {
            method = HttpMethod(order.method)
            if (order.key != null) header("Idempotency-Key", order.key)
        }
    }

    private fun Call.send() = execute().close()

    private fun Call.sendEnqueued() {
        try {
            then { }.get()
        } catch (failed: ExecutionException) {
            throw checkNotNull(failed.cause)
        }
    }

    /** Ends when [late] has, which runs in the callback of this call. */
    private fun Call.then(late: () -> Unit): CompletableFuture<Unit> {
        val result = CompletableFuture<Unit>()
        enqueue(
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) {
                    response.close()
                    runCatching(late).fold(result::complete, result::completeExceptionally)
                }

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) {
                    result.completeExceptionally(e)
                }
            },
        )
        return result
    }

    /** What goes on beside the block: a call, and after its answer the [order]. */
    private suspend fun Way.begin(order: Order): CompletableFuture<Unit> =
        when (this) {
            Way.INTERCEPTOR -> first(intercepted).then { intercepted.newCall(request(order)).send() }
            Way.INTERCEPTOR_ENQUEUED -> first(intercepted).then { intercepted.newCall(request(order)).sendEnqueued() }
            Way.FACTORY -> first(intercepted).then { factory.newCall(request(order)).send() }
            Way.FACTORY_ENQUEUED -> first(intercepted).then { factory.newCall(request(order)).sendEnqueued() }
            Way.KTOR_ON_OKHTTP -> first(intercepted).then { runBlocking { ktorOnOkHttp.send(order) } }
            Way.KTOR_ON_CIO -> first(intercepted).then { runBlocking { ktorOnCio.send(order) } }
            Way.FACTORY_IN_FACTORYS -> first(factory).then { factory.newCall(request(order)).sendEnqueued() }
            Way.KTOR_IN_FACTORYS -> first(factory).then { runBlocking { ktorOnCio.send(order) } }
            Way.MADE_INSIDE -> intercepted.newCall(request(order)).let { made -> outside { made.sendEnqueued() } }
            Way.MADE_INSIDE_BY_FACTORY -> factory.newCall(request(order)).let { made -> outside { made.sendEnqueued() } }
            Way.KTOR_LEFT_BEHIND -> leftBehind { ktorOnCio.send(order) }
            Way.INTERCEPTOR_LEFT_BEHIND -> leftBehind { intercepted.newCall(request(order)).send() }
            Way.FACTORY_LEFT_BEHIND -> leftBehind { factory.newCall(request(order)).sendEnqueued() }
            Way.INTERCEPTOR_LEFT_SUSPENDED -> leftSuspended { intercepted.newCall(request(order)).sendEnqueued() }
            Way.FACTORY_LEFT_SUSPENDED -> leftSuspended { factory.newCall(request(order)).send() }
        }

    private fun outside(late: () -> Unit): CompletableFuture<Unit> =
        CompletableFuture
            .runAsync {
                isOver.await(10, SECONDS)
                late()
            }.thenApply { }

    private suspend fun leftBehind(late: suspend () -> Unit): CompletableFuture<Unit> =
        CoroutineScope(currentCoroutineContext() + Job() + Dispatchers.IO)
            .async {
                isOver.await(10, SECONDS)
                late()
            }.asCompletableFuture()

    private suspend fun leftSuspended(late: () -> Unit): CompletableFuture<Unit> =
        CoroutineScope(currentCoroutineContext() + NonCancellable + Dispatchers.IO)
            .async {
                while (isOver.count > 0) delay(1)
                late()
            }.asCompletableFuture()

    /** How the first attempt comes to its end. */
    enum class Ending { FAILS, REACHES_ITS_LIMIT }

    /** What became of the first attempt's [order] if the second attempt sends the same. */
    private fun late(
        way: Way,
        ending: Ending,
        order: (Attempt) -> Order,
        policy: RetryPolicy = this.policy,
    ): Result<Unit> =
        runBlocking(Dispatchers.Default) {
            lateinit var late: CompletableFuture<Unit>
            val limited = RetryPolicy(policy) { if (ending == Ending.REACHES_ITS_LIMIT) attemptTimeout = 200.milliseconds }
            app.retry(limited) { attempt ->
                if (attempt.number == 1) {
                    late = way.begin(order(attempt))
                    if (ending == Ending.FAILS) throw IOException("lost")
                    // Not its own cancellation: whoever runs on does not hear of it.
                    late.thenApply { }.await()
                } else {
                    // Its limit must not end this one.
                    isOver.countDown()
                    intercepted.newCall(request(order(attempt))).send()
                }
            }
            runCatching { late.get(10, SECONDS) }.recoverCatching { throw (it as? ExecutionException)?.cause ?: it }
        }

    private val orders: Int get() = arrived.count { it.endsWith("/order") }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a keyless POST that an attempt makes after it failed is not sent`(way: Way) {
        val refused = late(way, Ending.FAILS, { Order() }).exceptionOrNull()
        assertIs<AttemptEndedException>(refused)
        assertEquals(false, refused.mayHaveArrived)
        assertEquals(1, orders, "$arrived")
    }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `nor is one that it makes after its limit`(way: Way) {
        assertIs<AttemptEndedException>(late(way, Ending.REACHES_ITS_LIMIT, { Order() }).exceptionOrNull())
        assertEquals(1, orders, "$arrived")
    }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `nor is one with a key that its layer makes, which is another one each time`(way: Way) {
        val making = RetryPolicy(policy) { makeKey = true }
        assertIs<AttemptEndedException>(late(way, Ending.FAILS, { Order() }, making).exceptionOrNull())
        assertEquals(1, orders, "$arrived")
    }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `what may be repeated is sent, however late`(way: Way) {
        for (order in listOf<(Attempt) -> Order>({ Order("GET") }, { Order(key = it.key()) })) {
            arrived.clear()
            late(way, Ending.FAILS, order).getOrThrow()
            assertEquals(2, orders, "$arrived")
        }
    }

    @Test
    fun `what the outer policy vouches for is sent`() {
        late(Way.INTERCEPTOR, Ending.FAILS, { Order() }, RetryPolicy(policy) { repeat = Repeat.ALWAYS }).getOrThrow()
        assertEquals(2, orders, "$arrived")
    }

    /** What becomes of a keyless POST that is sent after the whole call, whose block ends by [end]. */
    private fun afterwards(end: () -> Unit): Result<Unit> =
        runBlocking(Dispatchers.Default) {
            lateinit var late: CompletableFuture<Unit>
            runCatching {
                app.retry(RetryPolicy(policy) { maxAttempts = 1 }) {
                    late = Way.INTERCEPTOR.begin(Order())
                    end()
                }
            }
            isOver.countDown()
            runCatching { late.get(10, SECONDS) }
        }

    @Test
    fun `what is left of a block that succeeded, or whose caller knows that it may have arrived, is sent`() {
        afterwards { }.getOrThrow()
        afterwards { throw IOException("lost") }.getOrThrow()
        afterwards { error("permanent") }.getOrThrow()
        assertEquals(3, orders, "$arrived")
    }

    @Test
    fun `an unconfined caller that goes on within the block's last callback is outside of the block`() {
        isOver.countDown()
        val outcome = CompletableFuture<Unit>()
        val refused = ServerSocket(0).use { it.localPort }
        CoroutineScope(Dispatchers.Unconfined).launch {
            val failed =
                runCatching {
                    app.retry(RetryPolicy(policy) { maxAttempts = 1 }) { _ ->
                        intercepted.newCall(Request.Builder().url("http://127.0.0.1:$refused/").build()).await()
                    }
                }
            runCatching {
                assertEquals(false, failed.exceptionOrNull()?.mayHaveArrived)
                assertTrue(Thread.currentThread().name.startsWith("OkHttp"), Thread.currentThread().name)
                intercepted.newCall(request(Order())).send()
            }.fold(outcome::complete, outcome::completeExceptionally)
        }
        outcome.get(10, SECONDS)
        assertEquals(1, orders)
    }
}
