// Faults of real sockets, through each engine: what they are taken for, and what reaches the server.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import dev.comeback.testing.FakeLink
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.java.Java
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.client.statement.bodyAsText
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

class SocketsTest {
    private val engines: Map<String, HttpClientEngineFactory<*>> = mapOf("OkHttp" to OkHttp, "CIO" to CIO, "Java" to Java)

    private class Through(
        engine: HttpClientEngineFactory<*>,
        after: HttpClientConfig<*>.() -> Unit = {},
        onFailure: () -> Unit = {},
        policy: RetryPolicy = QUICK,
    ) : RecordedClient(engine, policy, after, onFailure = onFailure)

    private fun each(test: suspend (HttpClientEngineFactory<*>) -> Unit): List<DynamicTest> =
        engines.map { (name, engine) -> dynamicTest(name) { runBlocking { withTimeout(2.minutes) { test(engine) } } } }

    @TestFactory
    fun `a refused connection is never sent, and a POST goes again`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { status(200, "fine") }.use { server ->
                FakeLink.to(server.port).use { link ->
                    link.cut()
                    Through(engine, onFailure = { link.restore() }).use { through ->
                        val response = through.client.post("http://127.0.0.1:${link.port}/") { setBody("order") }
                        assertEquals("fine", response.bodyAsText())
                        assertEquals(setOf(OutcomeClass.NEVER_SENT), through.failed.map { it.outcome }.toSet())
                        assertEquals(listOf("order"), server.bodies.toList())
                    }
                }
            }
        }

    @TestFactory
    fun `a host that cannot be resolved is a failed look-up, never sent`(): List<DynamicTest> =
        each { engine ->
            Through(engine).use { through ->
                val left = runCatching { through.client.post("http://nowhere.invalid/") }.exceptionOrNull()
                assertEquals(FailureKind.DNS, through.failed.first().failure, "$left")
                assertEquals(OutcomeClass.NEVER_SENT, through.failed.first().outcome)
                // Until the platform's cache forgets it nobody would be asked.
                assertEquals(StopReason.Elapsed, assertNotNull(left).retryReport?.reason)
            }
        }

    @TestFactory
    fun `a reset in the middle is in doubt, a GET goes again and a POST does not`(): List<DynamicTest> =
        each { engine -> brokenOff(engine) { reset() } }

    @TestFactory
    fun `an end without an answer is in doubt, a GET goes again and a POST does not`(): List<DynamicTest> =
        each { engine -> brokenOff(engine) { end() } }

    private suspend fun brokenOff(
        engine: HttpClientEngineFactory<*>,
        broken: ScriptedServer.Answer.() -> Unit,
    ) {
        // OkHttp sends a GET again by itself, once; unseen, and not our attempt.
        ScriptedServer { number -> if (number < 3) broken() else status(200) }.use { server ->
            Through(engine).use { through ->
                assertEquals(
                    200,
                    through.client
                        .get(server.url)
                        .status.value,
                )
                assertTrue(through.failed.isNotEmpty())
                assertEquals(setOf(OutcomeClass.IN_DOUBT), through.failed.map { it.outcome }.toSet())
            }
        }
        ScriptedServer { broken() }.use { server ->
            Through(engine, policy = RetryPolicy(QUICK) { clientResends = dev.comeback.ClientResends.OFF }).use { through ->
                val left = runCatching { through.client.post(server.url) { setBody("order") } }.exceptionOrNull()
                assertEquals(StopReason.NotRepeatable, assertNotNull(left).retryReport?.reason, "$left")
                assertEquals(listOf("order"), server.bodies.toList())
            }
        }
    }

    private fun eachGivesUpTheStalled(through: (HttpClientEngineFactory<*>) -> Through): List<DynamicTest> =
        each { engine ->
            ScriptedServer { number -> if (number == 1) stall() else status(200) }.use { server ->
                through(engine).use { through ->
                    val answer = through.client.get(server.url)
                    assertEquals(200, answer.status.value)
                    assertEquals(FailureKind.ATTEMPT_TIMEOUT, through.failed.single().failure)
                    assertEquals(2, server.heads.size)
                }
            }
        }

    @TestFactory
    fun `a server that stalls is given up by the attempt's own timeout, and asked again`(): List<DynamicTest> =
        eachGivesUpTheStalled { Through(it, after = { install(HttpTimeout) { requestTimeoutMillis = 1500 } }) }

    @TestFactory
    fun `a server that stalls is given up by the policy's limit, and asked again`(): List<DynamicTest> =
        eachGivesUpTheStalled { Through(it, policy = RetryPolicy(QUICK) { attemptTimeout = 1500.milliseconds }) }

    @TestFactory
    fun `half a body of an answer that Ktor reads by itself is in doubt, and asked for again`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { number ->
                if (number == 1) {
                    say("HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nhalf")
                    end()
                } else {
                    status(200, "all of it.")
                }
            }.use { server ->
                Through(engine).use { through ->
                    assertEquals("all of it.", through.client.get(server.url).bodyAsText())
                    assertEquals(OutcomeClass.IN_DOUBT, through.failed.single().outcome)
                }
            }
        }

    @TestFactory
    fun `an attempt on a network that is gone is begun anew on the next one`(): List<DynamicTest> =
        each { engine ->
            ScriptedServer { number -> if (number == 1) stall() else status(200) }.use { server ->
                val network = ManualConnectivity(concernsLoopback = true).apply { available(1) }
                val comeback = Comeback { connectivity = network }
                val client = HttpClient(engine) { install(comeback.ktorPlugin) }
                val answer = CoroutineScope(Dispatchers.Default).async { client.get(server.url).status.value }
                while (server.heads.isEmpty()) delay(5)
                network.available(2)
                assertEquals(200, answer.await())
                assertEquals(2, server.heads.size)
                client.close()
                comeback.close()
            }
        }

    @Test
    fun `after a handover nothing goes over the OkHttp engine's old connections, which the network has dropped without a word`(): Unit =
        runBlocking {
            // Whatever comes over the first connection after its first request is lost.
            ScriptedServer { number -> if (number > 1 && connection == 1) stall() else status(200) }.use { server ->
                val network = ManualConnectivity(concernsLoopback = true).apply { available(1) }
                Comeback { connectivity = network }.use { comeback ->
                    HttpClient(OkHttp) { install(comeback.ktorPlugin) }.use { client ->
                        withTimeout(20.seconds) {
                            assertEquals(200, client.get(server.url).status.value)
                            network.available(2)
                            repeat(2) { assertEquals(200, client.get(server.url).status.value) }
                        }
                    }
                }
                assertEquals(listOf(1, 2, 2), server.connections.toList())
            }
        }

    @Test
    fun `a request that waits through a handover goes on over a fresh connection of the OkHttp engine's`(): Unit =
        runBlocking {
            ScriptedServer { number ->
                when {
                    number == 1 -> status(503)
                    connection == 1 -> stall()
                    else -> status(200)
                }
            }.use { server ->
                val network = ManualConnectivity(concernsLoopback = true).apply { available(1) }
                val moving = RetryListener { if (it is RetryEvent.WaitPlanned) network.available(2) }
                Comeback {
                    connectivity = network
                    listener = moving
                }.use { comeback ->
                    HttpClient(OkHttp) { install(comeback.ktorPlugin) }.use { client ->
                        withTimeout(20.seconds) { assertEquals(200, client.get(server.url).status.value) }
                    }
                }
                assertEquals(listOf(1, 2), server.connections.toList())
            }
        }

    private companion object {
        val QUICK =
            RetryPolicy {
                base = 1.milliseconds
                cap = 1.milliseconds
                jitter = Jitter.NONE
                maxElapsed = 8.seconds
            }
    }
}
