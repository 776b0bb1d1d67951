// One vector, every driver: interceptor, call factory, plugin and retry { } send the same number of requests at the same virtual times.
@file:OptIn(InternalComebackApi::class)

package dev.comeback.checks

import dev.comeback.Comeback
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.coroutines.AttemptResult
import dev.comeback.coroutines.RetryClassifier
import dev.comeback.coroutines.retry
import dev.comeback.ktor.ktorPlugin
import dev.comeback.okhttp.ComebackOkHttp
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
import dev.comeback.testing.SchedulerTime
import dev.comeback.testing.VirtualTime
import io.ktor.client.HttpClient
import io.ktor.client.engine.mock.MockEngine
import io.ktor.client.engine.mock.MockEngineConfig
import io.ktor.client.engine.mock.respond
import io.ktor.client.request.request
import io.ktor.client.request.setBody
import io.ktor.http.HttpMethod
import io.ktor.http.HttpStatusCode
import io.ktor.http.content.OutgoingContent
import io.ktor.http.headers
import io.ktor.utils.io.ByteReadChannel
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.cancel
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.StandardTestDispatcher
import kotlinx.coroutines.test.TestCoroutineScheduler
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Dispatcher
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okhttp3.ResponseBody.Companion.toResponseBody
import okio.Buffer
import okio.BufferedSink
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import java.io.IOException
import java.net.InetAddress
import java.net.Socket
import java.net.SocketAddress
import java.security.Security
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeUnit
import javax.net.SocketFactory
import kotlin.test.assertEquals
import kotlin.test.assertTrue

@OptIn(ExperimentalCoroutinesApi::class)
class DriversTest {
    private val scripts = Script.all().filter { it.isForDrivers }

    @Test
    fun `most vectors are for all drivers, and many for retry`() {
        val forAll = scripts.filter { it.isInMillis && !it.isOvertaken }
        val counts =
            listOf(Script.all().size, scripts.size, forAll.size, forAll.count { it.isForBlocks }, forAll.count { it.begins.size > 1 })
        assertTrue(counts[2] > 140 && counts[3] > 60 && counts[4] > 15, "$counts")
    }

    @TestFactory
    fun `all drivers send the same requests at the same times`(): List<DynamicTest> =
        scripts.map { script ->
            dynamicTest(script.name) {
                val before = Security.getProperty(NEGATIVE_CACHE)
                Security.setProperty(NEGATIVE_CACHE, script.lookUpSeconds.toString())
                try {
                    val throughInterceptor = throughInterceptor(script)
                    // A wait that was drawn seldom ends with a millisecond, which is all that the clock of a test's coroutines knows.
                    val inMillis = throughInterceptor.map { (it + MS - 1) / MS * MS }
                    if (!script.isOvertaken) {
                        assertEquals(throughInterceptor, throughFactory(script) { it.execute() }, "the factory")
                        assertEquals(throughInterceptor, throughFactory(script, ::enqueued), "the factory, enqueued")
                        if (script.isInMillis) assertEquals(inMillis, throughPlugin(script), "the plugin")
                    }
                    if (script.isForBlocks && script.isInMillis) assertEquals(inMillis, throughRetry(script), "retry")
                    // What the vector says itself, where it says it to the end.
                    assertEquals(script.begins, throughInterceptor.take(script.begins.size), "the vector")
                } finally {
                    Security.setProperty(NEGATIVE_CACHE, before.orEmpty())
                }
            }
        }

    private fun throughInterceptor(script: Script): List<Long> =
        throughOkHttp(script, { it.execute() }) { client, wire, app, configure ->
            client.comeback(app, script.policy, configure).addInterceptor(wire).build()
        }

    private fun throughFactory(
        script: Script,
        answer: (Call) -> Response,
    ): List<Long> =
        throughOkHttp(script, answer) { client, wire, app, configure ->
            app.callFactory(client.addInterceptor(wire).build(), script.policy, configure)
        }

    private fun enqueued(call: Call): Response {
        val future = CompletableFuture<Response>()
        call.enqueue(
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
        return try {
            future.get(1, TimeUnit.MINUTES)
        } catch (failed: ExecutionException) {
            throw checkNotNull(failed.cause)
        }
    }

    private fun throughOkHttp(
        script: Script,
        answer: (Call) -> Response,
        calls: (OkHttpClient.Builder, Interceptor, Comeback, ComebackOkHttp.() -> Unit) -> Call.Factory,
    ): List<Long> {
        val sent = CopyOnWriteArrayList<Long>()
        val clock = VirtualTime().apply { wallMillisAtZero = script.wallAtZero }
        val network = ManualConnectivity(clock, concernsLoopback = true)

        fun advanceTo(nanos: Long) = clock.advance((nanos - clock.nanos()).coerceAtLeast(0))
        val app =
            Comeback {
                time = clock
                connectivity = network
                seeds = { script.seed }
            }
        val wire =
            Interceptor { chain ->
                sent += clock.nanos()
                chain.request().body?.writeTo(Buffer())
                val attempt = script.attempts.getOrNull(sent.size - 1)
                attempt?.told?.forEach {
                    advanceTo(it.atNanos)
                    it.tell(network)
                }
                attempt?.let { advanceTo(it.endsAtNanos) }
                // What an interceptor throws proves nothing; what OkHttp itself reports of its sockets does.
                if (attempt?.error in NEEDS_PROOF) return@Interceptor chain.proceed(chain.request())
                if (attempt?.error != null) throw attempt.exception()
                Response
                    .Builder()
                    .request(chain.request())
                    .protocol(Protocol.HTTP_1_1)
                    .code(attempt?.status ?: 200)
                    .message("")
                    .apply {
                        attempt?.retryAfter?.forEach { addHeader("Retry-After", it) }
                        attempt?.date?.let { addHeader("Date", it) }
                        attempt?.shouldRetry?.let { addHeader(SHOULD_RETRY, it) }
                    }.body("".toResponseBody())
                    .build()
            }
        script.before.forEach { it.tell(network) }
        script.meanwhile.forEach { told -> clock.at(told.atNanos) { told.tell(network) } }
        val takesBody = script.hasBody || script.method in setOf("PUT", "POST", "PATCH")
        val request =
            Request
                .Builder()
                .url("http://192.0.2.1/")
                .method(
                    script.method,
                    if (!takesBody) {
                        null
                    } else if (script.isReplayable) {
                        "x".toRequestBody()
                    } else {
                        OneShot
                    },
                ).apply { script.headers().forEach { (name, value) -> header(name, value) } }
                .build()
        try {
            val failing = Unconnected { checkNotNull(script.attempts.getOrNull(sent.size - 1)).exception() }
            val client = OkHttpClient.Builder().dispatcher(dispatcher).socketFactory(failing)
            val factory =
                calls(client, wire, app) {
                    classify = { _, _, _ -> script.attempts.getOrNull(sent.size - 1)?.overrule }
                    onlyThisClientSends = true
                }
            answer(factory.newCall(request)).close()
        } catch (_: IOException) {
            // Whether it is thrown or returned is not what is compared.
        }
        app.close()
        network.close()
        return sent.toList()
    }

    private fun throughPlugin(script: Script): List<Long> {
        val sent = ArrayList<Long>()
        runTest {
            val network = networkOf(script)
            val app = appOf(script, network)
            val engine =
                MockEngine(
                    MockEngineConfig().apply {
                        dispatcher = StandardTestDispatcher(testScheduler)
                        addHandler { request ->
                            sent += currentTime * MS
                            (request.body as? OutgoingContent.ReadChannelContent)?.readFrom()
                            val attempt = script.attempts.getOrNull(sent.size - 1)
                            live(attempt, network, testScheduler)
                            val headers =
                                headers {
                                    attempt?.retryAfter?.forEach { append("Retry-After", it) }
                                    attempt?.date?.let { append("Date", it) }
                                    attempt?.shouldRetry?.let { append(SHOULD_RETRY, it) }
                                }
                            respond("", HttpStatusCode.fromValue(attempt?.status ?: 200), headers)
                        }
                    },
                )
            val client =
                HttpClient(engine) {
                    install(app.ktorPlugin) {
                        policy = script.policy
                        maxSendCount = 1000
                        classify = { _, _, _ -> script.attempts.getOrNull(sent.size - 1)?.overrule }
                    }
                    install(io.ktor.client.plugins.HttpSend) { maxSendCount = 1000 }
                }
            val telling = tellMeanwhile(script, network)
            runCatching {
                client.request("http://host/") {
                    method = HttpMethod.parse(script.method)
                    script.headers().forEach { (name, value) -> headers.append(name, value) }
                    if (script.hasBody) setBody(if (script.isReplayable) "x" else Channel)
                }
            }
            telling.cancel()
            client.close()
            app.close()
        }
        return sent
    }

    private fun throughRetry(script: Script): List<Long> {
        val sent = ArrayList<Long>()
        runTest {
            val network = networkOf(script)
            val app = appOf(script, network)
            val classifier =
                object : RetryClassifier {
                    override fun ofResult(result: Any?): AttemptResult? =
                        (result as Script.Attempt?)?.let { AttemptResult.status(checkNotNull(it.status), it.retryAfter, it.date) }
                }
            val telling = tellMeanwhile(script, network)
            runCatching {
                app.retry(script.policy, classifier) {
                    sent += currentTime * MS
                    val attempt = script.attempts.getOrNull(sent.size - 1)
                    live(attempt, network, testScheduler)
                    attempt
                }
            }
            telling.cancel()
            app.close()
        }
        return sent
    }

    private fun TestScope.networkOf(script: Script) =
        ManualConnectivity(SchedulerTime(testScheduler), concernsLoopback = true).also { network ->
            script.before.forEach { it.tell(network) }
        }

    private fun TestScope.appOf(
        script: Script,
        network: ManualConnectivity,
    ) = Comeback {
        time = SchedulerTime(testScheduler).apply { wallMillisAtZero = script.wallAtZero }
        connectivity = network
        seeds = { script.seed }
    }

    private fun TestScope.tellMeanwhile(
        script: Script,
        network: ManualConnectivity,
    ) = launch {
        for (told in script.meanwhile) {
            delay(told.atNanos / MS - currentTime)
            told.tell(network)
        }
    }

    private suspend fun live(
        attempt: Script.Attempt?,
        network: ManualConnectivity,
        clock: TestCoroutineScheduler,
    ) {
        attempt?.told?.forEach {
            delay(it.atNanos / MS - clock.currentTime)
            it.tell(network)
        }
        if (attempt == null) return
        delay(attempt.endsAtNanos / MS - clock.currentTime)
        if (attempt.error != null) throw attempt.exception()
    }

    private fun Script.headers(): List<Pair<String, String>> =
        listOfNotNull(
            ("Idempotency-Key" to "key").takeIf { hasKey },
            ("If-Match" to "\"v1\"").takeIf { isConditional },
            ("Cache-Control" to "only-if-cached").takeIf { isOnlyIfCached },
        )

    /** Its sockets connect to nobody; why, [failure] says. */
    private class Unconnected(
        private val failure: () -> IOException,
    ) : SocketFactory() {
        override fun createSocket(): Socket =
            object : Socket() {
                override fun connect(
                    endpoint: SocketAddress?,
                    timeout: Int,
                ): Unit = throw failure()
            }

        override fun createSocket(
            host: String?,
            port: Int,
        ): Socket = createSocket()

        override fun createSocket(
            host: String?,
            port: Int,
            localHost: InetAddress?,
            localPort: Int,
        ): Socket = createSocket()

        override fun createSocket(
            host: InetAddress?,
            port: Int,
        ): Socket = createSocket()

        override fun createSocket(
            address: InetAddress?,
            port: Int,
            localAddress: InetAddress?,
            localPort: Int,
        ): Socket = createSocket()
    }

    private object OneShot : RequestBody() {
        override fun contentType(): MediaType? = null

        override fun isOneShot(): Boolean = true

        override fun writeTo(sink: BufferedSink) {
            sink.writeUtf8("x")
        }
    }

    private object Channel : OutgoingContent.ReadChannelContent() {
        override fun readFrom() = ByteReadChannel("x")
    }

    private companion object {
        /** One for all: each has threads of its own. */
        val dispatcher = Dispatcher()
        const val MS = 1_000_000L
        const val NEGATIVE_CACHE = "networkaddress.cache.negative.ttl"
        const val SHOULD_RETRY = "x-should-retry"
    }
}

/** Failures that count as never sent, with proof: OkHttp itself must report them. */
private val NEEDS_PROOF =
    setOf("dns", "connect_refused", "connect_unreachable", "connect_timeout", "tls_broken_off", "refused_stream", "before_headers")
