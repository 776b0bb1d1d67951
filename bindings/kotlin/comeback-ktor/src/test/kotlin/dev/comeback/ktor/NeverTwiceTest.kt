// A request that must not be repeated reaches the server once, whatever plugins further in do and whatever the client would send again by itself. The
// server counts.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.Jitter
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.coroutines.retry
import dev.comeback.mayHaveArrived
import dev.comeback.retryReport
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.java.Java
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.engine.okhttp.OkHttpConfig
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.auth.Auth
import io.ktor.client.plugins.auth.providers.BearerTokens
import io.ktor.client.plugins.auth.providers.bearer
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.get
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.client.request.url
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import java.io.IOException
import java.net.ServerSocket
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

class NeverTwiceTest {
    private val engines: Map<String, HttpClientEngineFactory<*>> = mapOf("OkHttp" to OkHttp, "CIO" to CIO, "Java" to Java)

    private class Through(
        engine: HttpClientEngineFactory<*>,
        policy: RetryPolicy = PAYMENT,
        vouches: Boolean = false,
        after: HttpClientConfig<*>.() -> Unit = {},
    ) : RecordedClient(engine, policy, after, { onlyThisClientSends = vouches }) {
        val finished: RetryEvent.Finished get() = events.filterIsInstance<RetryEvent.Finished>().single()

        /** What a keyless POST to [url] ends with: a status or an exception. */
        suspend fun order(
            url: String,
            configure: HttpRequestBuilder.() -> Unit = {},
        ): Any =
            runCatching {
                client.post(url) {
                    setBody("order")
                    configure()
                }
            }.fold({ it.status.value }, { it })
    }

    private fun each(
        engines: Map<String, HttpClientEngineFactory<*>> = this.engines,
        test: suspend (HttpClientEngineFactory<*>) -> Unit,
    ): List<DynamicTest> = engines.map { (name, engine) -> dynamicTest(name) { runBlocking { withTimeout(1.minutes) { test(engine) } } } }

    @TestFactory
    fun `an order that was answered 401 is not sent again when the token's refresh is refused`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { status(401, headers = "WWW-Authenticate: Bearer\r\n") }.use { server ->
                val refreshes = HttpClient(engine)
                Through(engine, after = {
                    install(Auth) {
                        bearer {
                            loadTokens { BearerTokens("old", "refresh") }
                            refreshTokens {
                                refreshes.post("http://127.0.0.1:$REFUSED_PORT/token")
                                null
                            }
                        }
                    }
                }).use { through ->
                    val left = through.order(server.url)
                    assertTrue(left is Throwable, "$left")
                    assertEquals(listOf("order"), server.bodies.toList())
                    assertEquals(OutcomeClass.IN_DOUBT, through.failed.single().outcome)
                    assertTrue(left.mayHaveArrived)
                }
                refreshes.close()
            }
        }

    @TestFactory
    fun `the same where the refresh goes through the very client`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { status(401, headers = "WWW-Authenticate: Bearer\r\n") }.use { server ->
                Through(engine, after = {
                    install(Auth) {
                        bearer {
                            loadTokens { BearerTokens("old", "refresh") }
                            refreshTokens {
                                client.post("http://127.0.0.1:$REFUSED_PORT/token") { markAsRefreshTokenRequest() }
                                null
                            }
                        }
                    }
                }).use { through ->
                    val left = through.order(server.url)
                    assertEquals(listOf("order"), server.bodies.toList(), "$left")
                    assertEquals(1, through.events.filterIsInstance<RetryEvent.Finished>().size)
                }
            }
        }

    @TestFactory
    fun `an order that died is not sent again when a plugin's other host is refused`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { reset() }.use { server ->
                Through(engine).use { through ->
                    through.client.plugin(HttpSend).intercept { request ->
                        try {
                            execute(request)
                        } catch (_: IOException) {
                            request.url("http://127.0.0.1:$REFUSED_PORT/")
                            execute(request)
                        }
                    }
                    val left = through.order(server.url)
                    assertEquals(listOf("order"), server.bodies.toList(), "$left")
                    assertEquals(OutcomeClass.IN_DOUBT, through.failed.single().outcome)
                }
            }
        }

    @TestFactory
    fun `nor when a plugin asks another client, which is refused`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { reset() }.use { server ->
                val other = HttpClient(engine)
                Through(engine).use { through ->
                    through.client.plugin(HttpSend).intercept { request ->
                        try {
                            execute(request)
                        } catch (_: IOException) {
                            other.post("http://127.0.0.1:$REFUSED_PORT/") { setBody("order") }.call
                        }
                    }
                    val left = through.order(server.url)
                    assertEquals(listOf("order"), server.bodies.toList(), "$left")
                    assertEquals(OutcomeClass.IN_DOUBT, through.failed.single().outcome)
                }
                other.close()
            }
        }

    @TestFactory
    fun `nor when that client comes first, arrives and dies, and a third is refused`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { reset() }.use { server ->
                val other = HttpClient(engine)
                Through(engine).use { through ->
                    through.client.plugin(HttpSend).intercept {
                        try {
                            other.post(server.url) { setBody("order") }.call
                        } catch (_: IOException) {
                            other.post("http://127.0.0.1:$REFUSED_PORT/") { setBody("order") }.call
                        }
                    }
                    through.order("http://127.0.0.1:$REFUSED_PORT/")
                    val sends = server.bodies.size
                    // The other client is a plain one, and OkHttp re-sends nothing here.
                    assertEquals(1, sends)
                }
                other.close()
            }
        }

    @TestFactory
    fun `a second Comeback further in stands down, and tells what it sent`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { reset() }.use { server ->
                Through(engine).use { inner ->
                    Through(engine, policy = RetryPolicy(QUICK) { repeat = dev.comeback.Repeat.AUTO }).use { through ->
                        through.client.plugin(HttpSend).intercept { request ->
                            inner.client.post(server.url) { setBody("order") }
                            execute(request)
                        }
                        // The GET may go again, what it takes along may not.
                        val left = runCatching { through.client.get("http://127.0.0.1:$REFUSED_PORT/") }.exceptionOrNull()
                        assertEquals(StopReason.NotRepeatable, left?.retryReport?.reason, "$left")
                        assertEquals(listOf("order"), server.bodies.toList())
                        assertTrue(inner.events.isEmpty())
                    }
                }
            }
        }

    @TestFactory
    fun `a refused connection still is never sent, and goes again through a plugin for which the app vouches`(): List<DynamicTest> =
        each { engine ->
            Through(engine, policy = QUICK, vouches = true).use { through ->
                through.client.plugin(HttpSend).intercept { request -> execute(request) }
                val left = through.order("http://127.0.0.1:$REFUSED_PORT/") as Throwable
                assertEquals(StopReason.Attempts, left.retryReport?.reason)
                assertEquals(setOf(OutcomeClass.NEVER_SENT), through.failed.map { it.outcome }.toSet())
                assertFalse(left.mayHaveArrived)
            }
        }

    @TestFactory
    fun `a 408, and a 503 with Retry-After 0, reach OkHttp's own follow-ups under no policy`(): List<DynamicTest> =
        listOf(RetryPolicy.DEFAULT, RetryPolicy.READ, RetryPolicy.PAYMENT, RetryPolicy.BATCH).flatMap { policy ->
            listOf("408 X\r\n", "503 X\r\nRetry-After: 0\r\n").map { head ->
                dynamicTest("$policy ${head.take(3)}") {
                    runBlocking {
                        ScriptedServer { say("HTTP/1.1 ${head}Content-Length: 0\r\n\r\n") }.use { server ->
                            Through(OkHttp, policy).use { through ->
                                assertEquals(head.take(3).toInt(), through.order(server.url))
                                assertEquals(1, server.bodies.size)
                                assertEquals(1, through.finished.counted)
                            }
                        }
                    }
                }
            }
        }

    @Test
    fun `a GET arrives as often as the report says, and its answer keeps the Retry-After that came`() =
        runBlocking {
            ScriptedServer { say("HTTP/1.1 503 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n") }.use { server ->
                Through(OkHttp, policy = QUICK).use { through ->
                    val response = through.client.get(server.url)
                    assertEquals(listOf("0"), response.headers.getAll("Retry-After"))
                    assertEquals(4, server.heads.size)
                    assertEquals(4, through.finished.counted)
                }
            }
        }

    @Test
    fun `an order on a connection that the server has dropped is not sent again by OkHttp, under any policy`() =
        runBlocking {
            for (policy in listOf(RetryPolicy.DEFAULT, RetryPolicy.READ, RetryPolicy.PAYMENT, RetryPolicy.BATCH)) {
                ScriptedServer { number -> if (number == 2) end() else status(200) }.use { server ->
                    Through(OkHttp, policy).use { through ->
                        through.client.get(server.url)
                        val left = through.order(server.url)
                        assertTrue(left is IOException, "$policy $left")
                        assertEquals(listOf("", "order"), server.bodies.toList())
                        assertTrue(left.mayHaveArrived)
                    }
                }
            }
        }

    @Test
    fun `inside retry too OkHttp does not send an order again by itself`() =
        runBlocking {
            ScriptedServer { say("HTTP/1.1 503 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n") }.use { server ->
                Through(OkHttp, policy = QUICK).use { through ->
                    through.comeback.retry(QUICK) { through.order(server.url) }
                    assertEquals(1, server.bodies.size)
                }
            }
        }

    @Test
    fun `a client made from one that uses its OkHttp engine already is refused, with the way out`() {
        val app = Comeback { }
        HttpClient(OkHttp).use { plain ->
            val refused = assertFailsWith<IllegalStateException> { plain.config { install(app.ktorPlugin) } }
            assertTrue("comeback()" in assertNotNull(refused.message), refused.message)
        }
        app.close()
    }

    @Test
    fun `an OkHttp engine that another client has used before is refused`(): Unit =
        runBlocking {
            val app = Comeback { }
            ScriptedServer { status(200) }.use { server ->
                val engine = OkHttp.create()
                HttpClient(engine).use { it.get(server.url) }
                assertFailsWith<IllegalStateException> { HttpClient(engine) { install(app.ktorPlugin) } }
                engine.close()
            }
            app.close()
        }

    @Test
    fun `an OkHttp engine that was told of Comeback may be shared`(): Unit =
        runBlocking {
            val app = Comeback { }
            ScriptedServer { say("HTTP/1.1 503 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n") }.use { server ->
                HttpClient(OkHttp) { engine { comeback() } }.use { plain ->
                    // Without the plugin all is as it was.
                    plain.post(server.url) { setBody("plain") }
                    assertEquals(2, server.bodies.size)
                    plain
                        .config {
                            install(app.ktorPlugin) {
                                policy = RetryPolicy.PAYMENT
                            }
                        }.post(server.url) { setBody("order") }
                    assertEquals(listOf("plain", "plain", "order"), server.bodies.toList())
                    assertTrue(server.heads.none { "comeback" in it.lowercase() }, server.heads.toString())
                }
            }
            app.close()
        }

    @TestFactory
    fun `an attempt that reached its limit before a connection was there is never sent, through OkHttp's own word`(): List<DynamicTest> =
        each(mapOf("OkHttp" to OkHttp)) { engine ->
            ServerSocket(0, 1).use { full ->
                // Nobody accepts, and the queue is full: connects hang.
                val fillers = List(4) { java.net.Socket() }
                fillers.forEach { runCatching { it.connect(full.localSocketAddress, 100) } }
                Through(engine, policy = RetryPolicy(QUICK) { attemptTimeout = 300.milliseconds }).use { through ->
                    val left = through.order("http://127.0.0.1:${full.localPort}/") as Throwable
                    assertEquals(StopReason.Attempts, left.retryReport?.reason)
                    assertEquals(setOf<FailureKind?>(FailureKind.ATTEMPT_TIMEOUT), through.failed.map { it.failure }.toSet())
                    assertFalse(left.mayHaveArrived)
                }
                fillers.forEach { it.close() }
            }
        }

    @TestFactory
    fun `an order that is cut is not sent again, however late its answer comes`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer {
                Thread.sleep(600)
                status(200)
            }.use { server ->
                Through(engine, policy = RetryPolicy(QUICK) { attemptTimeout = 300.milliseconds }).use { through ->
                    val left = through.order(server.url) as Throwable
                    assertEquals(StopReason.NotRepeatable, left.retryReport?.reason)
                    assertTrue(left.mayHaveArrived)
                    Thread.sleep(800)
                    assertEquals(listOf("order"), server.bodies.toList())
                }
            }
        }

    @TestFactory
    fun `a key that a plugin further in writes anew each time is none`(): List<DynamicTest> =
        each { engine ->
            var keys = 0
            ScriptedServer { status(503) }.use { server ->
                Through(engine, policy = QUICK).use { through ->
                    through.client.plugin(HttpSend).intercept { request ->
                        request.header("Idempotency-Key", "key-${keys++}")
                        execute(request)
                    }
                    assertEquals(503, through.order(server.url))
                    assertEquals(1, server.bodies.size)
                }
            }
        }

    private companion object {
        /** Nobody listens there. */
        val REFUSED_PORT = ServerSocket(0).use { it.localPort }
        val QUICK =
            RetryPolicy {
                base = 1.milliseconds
                cap = 1.milliseconds
                jitter = Jitter.NONE
                maxElapsed = 8.seconds
            }
        val PAYMENT =
            RetryPolicy(RetryPolicy.PAYMENT) {
                base = 1.milliseconds
                cap = 1.milliseconds
                jitter = Jitter.NONE
            }
    }
}
