// What the tests use: a server on loopback, a Comeback in virtual time, and everything its listener heard.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.driver.Time
import dev.comeback.testing.VirtualTime
import mockwebserver3.MockResponse
import mockwebserver3.MockWebServer
import mockwebserver3.QueueDispatcher
import mockwebserver3.RecordedRequest
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Dns
import okhttp3.HttpUrl
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import java.io.IOException
import java.net.InetAddress
import java.net.UnknownHostException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger

/** How a request goes through Comeback. What holds for one way holds for all. */
internal enum class Driver {
    INTERCEPTOR,

    /** The call factory; a call is executed on its caller's thread. */
    FACTORY,

    /** The call factory; a call is enqueued, and the test waits for it. */
    ENQUEUED,
}

/** Calls that go through Comeback, and the client below. */
internal class Calls(
    private val factory: Call.Factory,
    val client: OkHttpClient,
) : Call.Factory by factory {
    val connectionPool get() = client.connectionPool
}

private class Enqueuing(
    private val call: Call,
) : Call by call {
    override fun execute(): Response =
        try {
            call.future().get()
        } catch (failed: ExecutionException) {
            throw failed.cause!!
        }
}

/** A server that answers 200 once its script is over. Its address is numeric: no name is looked up, and there is one route. */
internal open class LoopbackFixture(
    configureServer: MockWebServer.() -> Unit = {},
    clock: Time = VirtualTime(),
    private val driver: Driver = Driver.INTERCEPTOR,
    configureComeback: Comeback.Builder.() -> Unit = {},
) : AutoCloseable {
    val server =
        MockWebServer().apply {
            dispatcher = QueueDispatcher().apply { setFailFast(MockResponse(body = "fine")) }
            configureServer()
            start(LOOPBACK, 0)
        }
    val time by lazy { clock as VirtualTime }
    val connectivity = ManualConnectivity(clock, concernsLoopback = true)
    val events = CopyOnWriteArrayList<RetryEvent>()
    val comeback: Comeback =
        Comeback {
            time = clock
            connectivity = this@LoopbackFixture.connectivity
            listener = RetryListener { events += it }
            configureComeback()
        }
    private val clients = ArrayList<OkHttpClient>()

    fun url(
        path: String = "/",
        host: String = "127.0.0.1",
    ): HttpUrl =
        server
            .url(path)
            .newBuilder()
            .host(host)
            .build()

    fun request(
        method: String = "GET",
        body: RequestBody? = null,
        path: String = "/",
        host: String = "127.0.0.1",
        build: Request.Builder.() -> Unit = {},
    ): Request =
        Request
            .Builder()
            .url(url(path, host))
            .method(method, body)
            .apply(build)
            .build()

    fun post(
        body: RequestBody = BODY.toRequestBody(),
        host: String = "127.0.0.1",
        build: Request.Builder.() -> Unit = {},
    ): Request = request("POST", body, host = host, build = build)

    /** A client with Comeback first; [build] comes after it. */
    fun client(
        policy: RetryPolicy = RetryPolicy.DEFAULT,
        configure: ComebackOkHttp.() -> Unit = {},
        build: OkHttpClient.Builder.() -> Unit = {},
    ): OkHttpClient =
        remember(
            OkHttpClient
                .Builder()
                .comeback(comeback, policy, configure)
                .apply(build)
                .build(),
        )

    /** Comeback first by the way under test; [build] comes after it. */
    fun calls(
        policy: RetryPolicy = RetryPolicy.DEFAULT,
        configure: ComebackOkHttp.() -> Unit = {},
        build: OkHttpClient.Builder.() -> Unit = {},
    ): Calls {
        if (driver == Driver.INTERCEPTOR) return client(policy, configure, build).let { Calls(it, it) }
        val client = remember(OkHttpClient.Builder().apply(build).build())
        val factory = comeback.callFactory(client, policy, configure)
        return Calls(if (driver == Driver.FACTORY) factory else Call.Factory { Enqueuing(factory.newCall(it)) }, client)
    }

    fun factory(
        policy: RetryPolicy = RetryPolicy.DEFAULT,
        configure: ComebackOkHttp.() -> Unit = {},
        build: OkHttpClient.Builder.() -> Unit = {},
    ): ComebackCallFactory = comeback.callFactory(remember(OkHttpClient.Builder().apply(build).build()), policy, configure)

    /** In real time, for what other threads do. */
    fun awaitUntil(isSo: () -> Boolean) {
        val deadline = System.nanoTime() + 10_000_000_000
        while (!isSo()) {
            check(System.nanoTime() < deadline) { "it has not happened within 10 s" }
            Thread.sleep(1)
        }
    }

    /** To be shut down with the rest. */
    fun remember(client: OkHttpClient): OkHttpClient = client.also { clients += it }

    /** All requests that reached the server so far. */
    fun received(): List<RecordedRequest> = generateSequence { server.takeRequest(0, TimeUnit.MILLISECONDS) }.toList()

    inline fun <reified T : RetryEvent> heard(): List<T> = events.filterIsInstance<T>()

    override fun close() {
        for (client in clients) {
            client.dispatcher.executorService.shutdownNow()
            client.connectionPool.evictAll()
        }
        comeback.close()
        connectivity.close()
        server.close()
    }

    companion object {
        const val BODY = "amount=100&currency=EUR"
        const val KEY = "Idempotency-Key"
    }
}

internal fun status(
    code: Int,
    vararg headers: Pair<String, String>,
): MockResponse =
    MockResponse
        .Builder()
        .code(code)
        .apply { headers.forEach { (name, value) -> addHeader(name, value) } }
        .build()

internal fun Call.Factory.send(request: Request): Response = newCall(request).execute()

/** The server's address for every name, but only from the second look-up on. */
internal class SecondLookUp : Dns {
    private val lookUps = AtomicInteger()

    override fun lookup(hostname: String): List<InetAddress> {
        if (lookUps.incrementAndGet() == 1) throw UnknownHostException(hostname)
        return listOf(LOOPBACK)
    }
}

internal val LOOPBACK: InetAddress = InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1))

/** The status, or the exception. */
internal fun Call.Factory.outcomeOf(request: Request): Any =
    try {
        send(request).use { it.code }
    } catch (failure: IOException) {
        failure
    }

/**
 * The status, with the body read to its end. Where a test counts connections: OkHttp keeps the one of a response that is closed unread only if the rest comes
 * within 100 ms, and on a busy machine it may not.
 */
internal fun Call.Factory.readWhole(request: Request): Int =
    send(request).use {
        it.body.bytes()
        it.code
    }

/** Enqueues the call; the future ends with what the callback got. */
internal fun Call.future(): CompletableFuture<Response> {
    val future = CompletableFuture<Response>()
    enqueue(
        object : Callback {
            override fun onResponse(
                call: Call,
                response: Response,
            ) {
                future.complete(response)
            }

            override fun onFailure(
                call: Call,
                e: IOException,
            ) {
                future.completeExceptionally(e)
            }
        },
    )
    return future
}

/** The status, or the exception. */
internal fun CompletableFuture<Response>.outcome(): Any =
    try {
        get().use { it.code }
    } catch (failed: ExecutionException) {
        failed.cause!!
    }
