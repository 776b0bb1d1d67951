// One layer acts, the outermost: plugin, interceptor and retry { } in one stack never multiply attempts, and no mark of theirs reaches a server.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.StopReason
import dev.comeback.coroutines.retry
import dev.comeback.driver.OuterAttempt
import dev.comeback.mayHaveArrived
import dev.comeback.okhttp.await
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
import dev.comeback.retryReport
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.HttpClientEngineConfig
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.java.Java
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.engine.okhttp.OkHttpConfig
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.ServerResponseException
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.get
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.client.request.request
import io.ktor.client.request.setBody
import io.ktor.client.request.takeFrom
import io.ktor.client.statement.request
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.runBlocking
import okhttp3.Call
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Test
import java.io.IOException
import java.net.ServerSocket
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

class OneLayerTest {
    private val events = CopyOnWriteArrayList<RetryEvent>()
    private val app = Comeback { listener = RetryListener { events += it } }
    private val server = ScriptedServer { status(503) }
    private val quick =
        RetryPolicy {
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
        }

    @AfterEach
    fun close() {
        server.close()
        app.close()
    }

    private fun <T : HttpClientEngineConfig> HttpClientConfig<T>.plugin(policy: RetryPolicy = quick) {
        install(app.ktorPlugin) {
            this.policy = policy
        }
    }

    private fun assertOneCallOf(
        attempts: Int,
        sent: ScriptedServer = server,
    ) {
        assertEquals(attempts, sent.heads.size)
        assertEquals(1, events.filterIsInstance<RetryEvent.Finished>().size)
        assertNoMark(sent)
    }

    private fun assertNoMark(sent: ScriptedServer = server) {
        assertTrue(sent.heads.none { OuterAttempt.header.lowercase() in it.lowercase() }, sent.heads.toString())
    }

    @Test
    fun `an interceptor in the engine's configuration stands down`(): Unit =
        runBlocking {
            HttpClient(OkHttp) {
                engine { config { comeback(app, quick) } }
                plugin()
            }.use { assertEquals(503, it.get(server.url).status.value) }
            assertOneCallOf(attempts = 4)
        }

    @Test
    fun `with both layers a keyless POST that reached nobody goes again, whichever acts`(): Unit =
        runBlocking {
            val refused = ServerSocket(0).use { it.localPort }
            HttpClient(OkHttp) {
                engine { config { comeback(app, quick) } }
                plugin()
            }.use { client ->
                for (policy in listOf(quick, RetryPolicy.OFF)) {
                    val thrown = assertFailsWith<IOException> { client.post("http://127.0.0.1:$refused/") { retryPolicy(policy) } }
                    assertEquals(StopReason.Attempts, thrown.retryReport?.reason)
                    assertEquals(false, thrown.mayHaveArrived)
                }
                val thrown = assertFailsWith<IOException> { app.retry(quick) { client.post("http://127.0.0.1:$refused/") } }
                assertEquals(StopReason.Attempts, thrown.retryReport?.reason)
            }
        }

    @Test
    fun `an interceptor on a client that the app brings stands down`(): Unit =
        runBlocking {
            HttpClient(OkHttp) {
                engine { preconfigured = OkHttpClient.Builder().comeback(app, quick).build() }
                plugin()
            }.use { assertEquals(503, it.get(server.url).status.value) }
            assertOneCallOf(attempts = 4)
        }

    @Test
    fun `with a policy that is off the plugin says nothing, and the interceptor acts`(): Unit =
        runBlocking {
            HttpClient(OkHttp) {
                engine { config { comeback(app, quick) } }
                plugin()
            }.use { client -> client.get(server.url) { retryPolicy(RetryPolicy.OFF) } }
            assertOneCallOf(attempts = 4)
        }

    @Test
    fun `no mark reaches a server, whatever the engine`(): Unit =
        runBlocking {
            for (engine in listOf(OkHttp, CIO, Java)) {
                HttpClient(engine) { plugin() }.use { it.get(server.url) }
            }
            assertEquals(12, server.heads.size)
            assertNoMark()
        }

    @Test
    fun `a caller's header that looks like a mark goes on as it is and is not heeded`(): Unit =
        runBlocking {
            HttpClient(OkHttp) {
                engine { config { comeback(app, quick) } }
                plugin()
            }.use { it.get(server.url) { header("Comeback-Layer", "false//") } }
            assertOneCallOf(attempts = 4)
            assertTrue(server.heads.all { "Comeback-Layer: false//" in it })
        }

    @Test
    fun `the plugin inside retry stands down`(): Unit =
        runBlocking {
            HttpClient(CIO) {
                plugin()
                expectSuccess = true
            }.use { client ->
                val left = assertFailsWith<ServerResponseException> { app.retry(quick, ResponseClassifier) { client.get(server.url) } }
                assertEquals(503, left.response.status.value)
            }
            assertOneCallOf(attempts = 4)
        }

    @Test
    fun `the interceptor inside retry stands down where it runs on the block's thread`(): Unit =
        runBlocking {
            val http = OkHttpClient.Builder().comeback(app, quick).build()
            assertFailsWith<IOException> {
                app.retry(quick) {
                    http.newCall(Request.Builder().url(server.url).build()).execute().use {
                        if (it.code !=
                            200
                        ) {
                            throw java.net.SocketException("reset")
                        }
                    }
                }
            }
            assertOneCallOf(attempts = 4)
        }

    @Test
    fun `the call factory inside retry stands down, on the block's thread and off it`(): Unit =
        runBlocking {
            val calls = app.callFactory(OkHttpClient(), quick)
            val sendings = listOf<suspend (Call) -> Response>({ it.execute() }, { it.await() })
            for (send in sendings) {
                val left =
                    assertFailsWith<IOException> {
                        app.retry(quick) {
                            send(calls.newCall(Request.Builder().url(server.url).build())).close()
                            throw java.net.SocketException("reset")
                        }
                    }
                assertEquals(StopReason.Attempts, left.retryReport?.reason)
            }
            assertEquals(8, server.heads.size)
            assertEquals(2, events.filterIsInstance<RetryEvent.Finished>().size)
        }

    @Test
    fun `plugin and interceptor inside retry stand down both`(): Unit =
        runBlocking {
            HttpClient(OkHttp) {
                engine { preconfigured = OkHttpClient() }
                plugin()
            }.use { client ->
                assertFailsWith<IOException> {
                    app.retry(quick) {
                        client.get(server.url)
                        throw java.net.SocketException("reset")
                    }
                }
            }
            assertOneCallOf(attempts = 4)
        }

    @Test
    fun `retry, plugin and an interceptor in the engine are one layer`(): Unit =
        runBlocking {
            HttpClient(OkHttp) {
                engine { preconfigured = OkHttpClient.Builder().comeback(app, quick).build() }
                plugin()
            }.use { client -> app.retry(quick, ResponseClassifier) { client.get(server.url) } }
            assertOneCallOf(attempts = 4)
        }

    @Test
    fun `the app's own interceptors see no mark, which a signature might cover`(): Unit =
        runBlocking {
            val seen = CopyOnWriteArrayList<String>()
            val sees = Interceptor { chain -> chain.proceed(chain.request().also { seen += it.headers.names() }) }
            HttpClient(OkHttp) {
                engine {
                    preconfigured = OkHttpClient.Builder().addInterceptor(sees).build()
                    addInterceptor(sees)
                    addNetworkInterceptor(sees)
                }
                plugin()
            }.use { it.get(server.url) }
            assertTrue("User-Agent" in seen)
            assertTrue(OuterAttempt.header !in seen)
        }

    @Test
    fun `the plugin in runBlocking stands down, inside retry and inside an interceptor of OkHttp's`(): Unit =
        runBlocking {
            HttpClient(CIO) { plugin() }.use { client ->
                app.retry(quick, ResponseClassifier) { runBlocking { client.get(server.url) } }
                assertOneCallOf(4)
                val outer =
                    OkHttpClient
                        .Builder()
                        .comeback(app, quick)
                        .addInterceptor { chain ->
                            runBlocking { client.post(server.url) }
                            chain.proceed(chain.request())
                        }.build()
                outer.newCall(Request.Builder().url(server.url).build()).execute().use {
                    assertEquals(StopReason.NotRepeatable, it.request.tag(RetryReport::class.java)?.reason)
                }
            }
            assertEquals(listOf("POST", "GET"), server.heads.drop(4).map { it.substringBefore(' ') })
        }

    @Test
    fun `what an attempt has started and left behind is outside of it once it is over, and of the next one too`(): Unit =
        runBlocking {
            val http = OkHttpClient.Builder().comeback(app, quick).build()
            val leftBehind = ArrayList<Deferred<OuterAttempt?>>()
            val isNext = CompletableDeferred<Unit>()
            HttpClient(CIO) { plugin() }.use { client ->
                client.plugin(HttpSend).intercept { request ->
                    assertNotNull(OuterAttempt.onThisThread)
                    if (leftBehind.isEmpty()) {
                        leftBehind +=
                            CoroutineScope(currentCoroutineContext() + Job() + Dispatchers.IO).async {
                                isNext.await()
                                http
                                    .newCall(
                                        Request
                                            .Builder()
                                            .url(server.url)
                                            .post("order".toRequestBody())
                                            .build(),
                                    ).execute()
                                    .close()
                                OuterAttempt.onThisThread
                            }
                    } else {
                        isNext.complete(Unit)
                        assertNull(leftBehind.single().await())
                    }
                    execute(request)
                }
                // A POST of its own would forbid the next attempt.
                assertEquals(StopReason.Attempts, client.get(server.url).retryReport?.reason)
            }
            assertEquals(listOf("GET", "POST", "GET", "GET", "GET"), server.heads.map { it.substringBefore(' ') })
        }

    private val making = RetryPolicy(quick) { makeKey = true }

    private fun keys(server: ScriptedServer = this.server) =
        server.heads.map { head -> head.lines().firstOrNull { it.startsWith("Idempotency-Key:", ignoreCase = true) }?.substringAfter(':') }

    @Test
    fun `a second order that is built from the first one's request has a key of its own`(): Unit =
        runBlocking {
            ScriptedServer { status(200) }.use { good ->
                HttpClient(CIO) { plugin(making) }.use { client ->
                    val first = client.post(good.url) { setBody("one") }.request
                    client.request(HttpRequestBuilder().takeFrom(first).apply { setBody("two") })
                    client.request(HttpRequestBuilder().takeFrom(first))
                }
                assertEquals(3, keys(good).filterNotNull().toSet().size)
            }
        }

    @Test
    fun `a request that failed is the same order when it is sent again as it is, and another with another body`(): Unit =
        runBlocking {
            HttpClient(CIO) { plugin(making) }.use { client ->
                val first = client.post(server.url) { setBody("one") }.request
                client.request(HttpRequestBuilder().takeFrom(first))
                assertEquals(1, keys().toSet().size)
                client.request(HttpRequestBuilder().takeFrom(first).apply { setBody("two") })
            }
            assertEquals(2, keys().filterNotNull().toSet().size)
        }

    @Test
    fun `a request made from one that was sent carries no mark, and no limits of the other's attempts`(): Unit =
        runBlocking {
            HttpClient(OkHttp) { plugin() }.use { client ->
                val sent = client.get(server.url).request
                HttpClient(CIO) { plugin(RetryPolicy.OFF) }.use { other -> other.request(HttpRequestBuilder().takeFrom(sent)) }
            }
            assertEquals(5, server.heads.size)
            assertNoMark()
        }

    @Test
    fun `where the policy says so OkHttp does not send again at a Retry-After of 0`(): Unit =
        runBlocking {
            ScriptedServer { say("HTTP/1.1 503 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n") }.use { eager ->
                HttpClient(OkHttp) { plugin(RetryPolicy.PAYMENT) }.use { client ->
                    assertEquals(503, client.post(eager.url) { setBody("order") }.status.value)
                    assertEquals(1, eager.heads.size)
                }
            }
        }

    @Test
    fun `a Retry-After that OkHttp cannot count is very long`(): Unit =
        runBlocking {
            ScriptedServer { say("HTTP/1.1 503 X\r\nRetry-After: 99999999999\r\nContent-Length: 0\r\n\r\n") }.use { patient ->
                HttpClient(OkHttp) { plugin() }.use { client ->
                    val response = client.get(patient.url)
                    assertEquals(503, response.status.value)
                    assertIs<StopReason.ServerWaitTooLong>(response.retryReport?.reason)
                }
            }
        }

    @Test
    fun `where the policy says so OkHttp does not send again by itself`(): Unit =
        runBlocking {
            // The second request of a connection meets its end, which OkHttp would answer by a fresh connection of its own.
            ScriptedServer { number -> if (number == 2) end() else status(200) }.use { flaky ->
                HttpClient(OkHttp) { plugin(RetryPolicy.PAYMENT) }.use { client ->
                    client.get(flaky.url)
                    assertFailsWith<IOException> { client.post(flaky.url) { setBody("order") } }
                    assertEquals(listOf("", "order"), flaky.bodies.toList())
                }
            }
        }
}
