// Connections that die without a word: no attempt begins on one after an attempt on it was ended by time.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.cio.CIOEngineConfig
import io.ktor.client.engine.config
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.engine.okhttp.OkHttpConfig
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.request.get
import io.ktor.client.request.header
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import mockwebserver3.MockResponse
import mockwebserver3.MockWebServer
import mockwebserver3.RecordedRequest
import mockwebserver3.SocketEffect
import okhttp3.Dispatcher
import okhttp3.Protocol
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

class DeadConnectionsTest {
    private val pipelining =
        object : HttpClientEngineFactory<CIOEngineConfig> {
            override fun create(block: CIOEngineConfig.() -> Unit) =
                CIO.create {
                    pipelining = true
                    block()
                }
        }
    private val engines: Map<String, HttpClientEngineFactory<*>> = mapOf("OkHttp" to OkHttp, "CIO" to CIO, "CIO, pipelining" to pipelining)
    private val events = CopyOnWriteArrayList<RetryEvent>()
    private val app = Comeback { listener = RetryListener { events += it } }
    private val short =
        RetryPolicy(RetryPolicy.READ) {
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
            attemptTimeout = 400.milliseconds
        }

    /** Long enough for all to be under way on a busy machine. */
    private val patient = RetryPolicy(short) { attemptTimeout = 5.seconds }

    /** The first connections, which die as soon as [die]. */
    private val dying = CopyOnWriteArrayList<Int>()

    @Volatile
    private var die = false
    private var idle = IDLE

    @AfterEach
    fun close() = app.close()

    private fun each(test: suspend (HttpClient, ScriptedServer) -> Unit): List<DynamicTest> =
        engines.map { (name, engine) ->
            dynamicTest(name) {
                events.clear()
                dying.clear()
                die = false
                // Pipelined, all would go over the first.
                idle = if (engine === pipelining) 1 else IDLE
                val together = CyclicBarrier(idle)
                ScriptedServer { number ->
                    if (number <= idle) {
                        dying += connection
                        together.await(10, SECONDS)
                    }
                    if (die && connection in dying) stall() else status(200)
                }.use { server ->
                    HttpClient(engine) {
                        install(app.ktorPlugin) {
                            policy = short
                        }
                    }.use { client -> runBlocking(Dispatchers.Default) { withTimeout(1.minutes) { test(client, server) } } }
                }
            }
        }

    private suspend fun HttpClient.fillPool(server: ScriptedServer) =
        coroutineScope { List(idle) { async { get(server.url) { retryPolicy(RetryPolicy.OFF) } } }.awaitAll() }

    private val failed get() = events.filterIsInstance<RetryEvent.AttemptFailed>()

    @TestFactory
    fun `the second attempt is on a new connection, though others lie idle`() =
        each { client, server ->
            client.fillPool(server)
            die = true
            assertEquals(200, client.get(server.url).status.value)
            assertTrue(failed.size <= 1, "$failed")
            // And so is another call's first.
            events.clear()
            assertEquals(200, client.get(server.url).status.value)
            assertEquals(emptyList(), failed)
            assertTrue(server.connections.last() !in dying)
        }

    @TestFactory
    fun `many calls in flight over the death make at most one attempt each on a dead one`() =
        each { client, server ->
            client.fillPool(server)
            die = true
            val statuses = coroutineScope { List(50) { async { client.get(server.url).status.value } }.awaitAll() }
            assertEquals(List(50) { 200 }, statuses)
            assertTrue(failed.size <= 50, "${failed.size}")
        }

    @TestFactory
    fun `a block of retry that is ended by time has suspect connections too`() =
        each { client, server ->
            client.fillPool(server)
            die = true
            assertEquals(200, app.retry(short) { client.get(server.url).status.value })
            assertTrue(failed.size <= 1, "$failed")
        }

    @TestFactory
    fun `READ answers in time, with the client's own timeout and no other`() =
        each { client, server ->
            client.fillPool(server)
            die = true
            val began = TimeSource.Monotonic.markNow()
            val inTime = client.config { install(HttpTimeout) { socketTimeoutMillis = 1_000 } }
            assertEquals(200, inTime.get(server.url) { retryPolicy(RetryPolicy.READ) }.status.value)
            assertTrue(began.elapsedNow() < 5.seconds, "${began.elapsedNow()}")
            assertTrue(failed.size <= 1, "$failed")
        }

    /** All at once, whatever an engine allows by itself. */
    private val wide: Map<String, HttpClientEngineFactory<*>> =
        mapOf(
            "OkHttp" to OkHttp.config { wide() },
            "CIO" to
                CIO.config {
                    maxConnectionsCount = MANY
                    endpoint.maxConnectionsPerRoute = MANY
                },
        )

    private fun OkHttpConfig.wide() =
        config {
            dispatcher(
                Dispatcher().apply {
                    maxRequests = MANY
                    maxRequestsPerHost = MANY
                },
            )
        }

    private fun client(engine: HttpClientEngineFactory<*>) =
        HttpClient(engine) {
            install(app.ktorPlugin) {
                policy = patient
                label = { it.headers[CALL] }
            }
        }

    private suspend fun HttpClient.many(
        url: String,
        onceAllAreOut: suspend () -> Unit,
    ) = coroutineScope {
        val calls = List(MANY) { number -> async { get(url) { header(CALL, "$number") }.status.value } }
        onceAllAreOut()
        assertEquals(List(MANY) { 200 }, calls.awaitAll())
    }

    private fun assertOneFailedAttemptEach() {
        assertEquals(emptyMap(), failed.groupBy { it.label }.filterValues { it.size > 1 })
    }

    @TestFactory
    fun `1,000 calls in flight over the death make one attempt each on a dead connection`(): List<DynamicTest> =
        wide.map { (name, engine) ->
            dynamicTest(name) {
                events.clear()
                val out = AtomicInteger()
                ScriptedServer { number ->
                    out.incrementAndGet()
                    if (number <= MANY) stall() else status(200)
                }.use { server ->
                    client(engine).use { client ->
                        onThreads { client.many(server.url) { waitUntil { out.get() >= MANY } } }
                        assertOneFailedAttemptEach()
                        assertTrue(server.connections.takeLast(MANY).all { it > MANY }, "all that answered are new")
                    }
                }
            }
        }

    private suspend fun waitUntil(condition: () -> Boolean) {
        while (!condition()) delay(1.milliseconds)
    }

    private fun onThreads(test: suspend () -> Unit) = runBlocking(Dispatchers.Default) { withTimeout(1.minutes) { test() } }

    /** [isHeld]: whether requests over the first connection are never answered. */
    private fun overHttp2(
        isHeld: () -> Boolean = { false },
        test: suspend (HttpClient, DyingTunnel, MockWebServer) -> Unit,
    ) {
        val server = MockWebServer()
        server.protocols = listOf(Protocol.H2_PRIOR_KNOWLEDGE)
        server.dispatcher =
            object : mockwebserver3.Dispatcher() {
                override fun dispatch(request: RecordedRequest): MockResponse {
                    val response = MockResponse.Builder().addHeader("X-Connection", "${request.connectionIndex}")
                    if (request.connectionIndex == 0 && isHeld()) response.onResponseStart(SocketEffect.Stall)
                    return response.build()
                }
            }
        server.start()
        DyingTunnel(server.port).use { tunnel ->
            val engine =
                OkHttp.config {
                    wide()
                    config { protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE)) }
                }
            client(engine).use { client -> onThreads { test(client, tunnel, server) } }
        }
        server.close()
    }

    private val shortInTunnel = RetryPolicy(short) { attemptTimeout = 600.milliseconds }

    @Test
    fun `over HTTP2 the second attempt is on a new connection, and so is another call's first`() =
        overHttp2 { client, tunnel, _ ->
            client.get(tunnel.url)
            tunnel.die()
            assertEquals("1", client.get(tunnel.url) { retryPolicy(shortInTunnel) }.headers["X-Connection"])
            assertEquals(1, failed.size)
            assertEquals("1", client.get(tunnel.url) { retryPolicy(shortInTunnel) }.headers["X-Connection"])
            assertEquals(1, failed.size)
            assertEquals(2, tunnel.connections)
        }

    @Test
    fun `over HTTP2 1,000 calls in flight over the death make one attempt each on the dead connection`() {
        var isHeld = false
        overHttp2({ isHeld }) { client, tunnel, server ->
            client.get(tunnel.url)
            isHeld = true
            client.many(tunnel.url) {
                waitUntil { server.requestCount > MANY }
                tunnel.die()
            }
            assertOneFailedAttemptEach()
        }
    }

    private companion object {
        const val MANY = 1_000
        const val CALL = "X-Call"
        const val IDLE = 5
    }
}
