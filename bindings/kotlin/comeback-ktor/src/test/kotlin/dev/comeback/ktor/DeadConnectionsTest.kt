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
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.request.get
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes

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
                        install(ComebackRetry) {
                            comeback = app
                            policy = short
                        }
                    }.use { client -> runBlocking(Dispatchers.Default) { withTimeout(1.minutes) { test(client, server) } } }
                }
            }
        }

    private suspend fun HttpClient.fillPool(server: ScriptedServer) =
        kotlinx.coroutines.coroutineScope { List(idle) { async { get(server.url) { retryPolicy(RetryPolicy.OFF) } } }.awaitAll() }

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
            val statuses = kotlinx.coroutines.coroutineScope { List(50) { async { client.get(server.url).status.value } }.awaitAll() }
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

    private companion object {
        const val IDLE = 5
    }
}
