// Limits hold, and in the right time: without the help of what runs further in, in the client's own time, and with nothing left of what they ended.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.java.Java
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.plugin
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.prepareGet
import io.ktor.client.statement.bodyAsText
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

class LimitsTest {
    private val engines: Map<String, HttpClientEngineFactory<*>> = mapOf("OkHttp" to OkHttp, "CIO" to CIO, "Java" to Java)
    private val events = CopyOnWriteArrayList<RetryEvent>()
    private val app = Comeback { listener = RetryListener { events += it } }

    /** One attempt of 300 ms. */
    private val short =
        RetryPolicy {
            maxAttempts = 1
            attemptTimeout = 300.milliseconds
        }

    @AfterEach
    fun close() = app.close()

    private fun client(
        engine: HttpClientEngineFactory<*>,
        policy: RetryPolicy,
    ) = HttpClient(engine) {
        install(app.ktorPlugin) {
            this.policy = policy
        }
    }

    private fun each(
        policy: RetryPolicy = short,
        test: suspend (HttpClient) -> Unit,
    ): List<DynamicTest> =
        engines.map { (name, engine) ->
            dynamicTest(name) {
                events.clear()
                client(engine, policy).use { runBlocking(Dispatchers.Default) { withTimeout(1.minutes) { test(it) } } }
            }
        }

    private suspend fun took(action: suspend () -> Unit): Duration {
        val began = TimeSource.Monotonic.markNow()
        action()
        return began.elapsedNow()
    }

    /** Much may run beside this; HangMatrixTest is strict. */
    private fun Duration.assertInTime() = assertTrue(this in 300.milliseconds..1_300.milliseconds, "$this")

    @TestFactory
    fun `a virtual time that runs ahead ends no attempt on a real network`() =
        each(RetryPolicy.READ) { client ->
            ScriptedServer {
                Thread.sleep(300)
                status(200)
            }.use { server ->
                runTest { assertEquals(200, client.get(server.url).status.value) }
                assertTrue(events.none { it is RetryEvent.AttemptFailed }, "$events")
            }
        }

    @TestFactory
    fun `nor one that has an attempt_timeout, which ends it in the client's own time`() =
        each { client ->
            ScriptedServer { stall() }.use { server ->
                took {
                    runTest(
                        timeout = 1.minutes,
                    ) { assertFailsWith<HttpRequestTimeoutException> { client.get(server.url) } }
                }.assertInTime()
            }
        }

    @TestFactory
    fun `the caller has its answer though a plugin further in does not let itself be cancelled`() =
        each { client ->
            val goesOn = CompletableDeferred<Unit>()
            client.plugin(HttpSend).intercept { request ->
                withContext(NonCancellable) { goesOn.await() }
                execute(request)
            }
            ScriptedServer { status(200) }.use { server ->
                took { assertFailsWith<HttpRequestTimeoutException> { client.post(server.url) } }.assertInTime()
                assertEquals(FailureKind.ATTEMPT_TIMEOUT, events.filterIsInstance<RetryEvent.AttemptFailed>().single().failure)
                goesOn.complete(Unit)
                delay(200.milliseconds)
                // What it does later reaches nobody.
                assertEquals(0, server.heads.size)
            }
        }

    @TestFactory
    fun `or blocks its thread`() =
        each { client ->
            val goesOn = CountDownLatch(1)
            client.plugin(HttpSend).intercept { request ->
                goesOn.await(10, SECONDS)
                execute(request)
            }
            ScriptedServer { status(200) }.use { server ->
                took { assertFailsWith<HttpRequestTimeoutException> { client.post(server.url) } }.assertInTime()
                goesOn.countDown()
                delay(200.milliseconds)
                assertEquals(0, server.heads.size)
            }
        }

    @TestFactory
    fun `a plugin that needs long for a second request is ended within the first one's limit`() =
        each { client ->
            ScriptedServer { number -> if (number == 1) status(401) else stall() }.use { server ->
                client.plugin(HttpSend).intercept { request ->
                    execute(request)
                    execute(request)
                }
                took { assertFailsWith<HttpRequestTimeoutException> { client.get(server.url) } }.assertInTime()
                assertEquals(2, server.heads.size)
            }
        }

    @TestFactory
    fun `beyond read_body the rest follows unread`(): List<DynamicTest> {
        val whole = "0123456789".repeat(20_000)
        return each(RetryPolicy { readBody = 1_000 }) { client ->
            ScriptedServer { status(200, whole) }.use { server -> assertEquals(whole, client.prepareGetText(server.url)) }
        }
    }

    @TestFactory
    fun `with read_body a body that hangs is ended by the attempt's limit, and asked for again`() =
        each(
            RetryPolicy(short) {
                maxAttempts = 2
                base = 1.milliseconds
                cap = 1.milliseconds
                readBody = 64 * 1024
            },
        ) { client ->
            ScriptedServer { number ->
                if (number == 1) {
                    say("HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\n01234")
                    stall()
                } else {
                    status(200, "0123456789")
                }
            }.use { server ->
                took { assertEquals("0123456789", client.prepareGetText(server.url)) }.assertInTime()
                assertEquals(2, server.heads.size)
            }
        }

    @TestFactory
    fun `an event stream is never read before it is handed on`() =
        each(RetryPolicy { readBody = 64 * 1024 }) { client ->
            ScriptedServer {
                say("HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
                Thread.sleep(2_000)
            }.use { server ->
                val began = TimeSource.Monotonic.markNow()
                val handedOn = client.prepareGet(server.url).execute { began.elapsedNow() }
                assertTrue(handedOn < 1.seconds, "$handedOn")
            }
        }

    @Test
    fun `an attempt's limit of a mocked engine goes by the engine's time`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(
                    policy = RetryPolicy(MockEngineFixture.STEADY) { attemptTimeout = 5.seconds },
                ) { kotlinx.coroutines.awaitCancellation() }
            val left = assertFailsWith<HttpRequestTimeoutException> { client.get("http://host/") }
            assertEquals(StopReason.Elapsed, left.retryReport?.reason)
        }
}

/** Streamed: Ktor itself reads no body before it is handed on. */
private suspend fun HttpClient.prepareGetText(url: String): String = prepareGet(url).execute { it.bodyAsText() }
