// Thousands of orders without a key, under random faults, random cancellation and random plugins further in: the server never sees one twice, and no
// report says that one has not arrived which it has seen.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.mayHaveArrived
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.config
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.client.request.url
import io.ktor.http.content.OutgoingContent
import io.ktor.utils.io.ByteWriteChannel
import io.ktor.utils.io.writeStringUtf8
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import java.io.IOException
import java.net.ServerSocket
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger
import kotlin.coroutines.CoroutineContext
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

class RandomFaultsTest {
    private val refused = ServerSocket(0).use { it.localPort }

    private val policies =
        listOf(RetryPolicy.DEFAULT, RetryPolicy.READ, RetryPolicy.PAYMENT, RetryPolicy.BATCH).map { preset ->
            RetryPolicy(preset) {
                base = 1.milliseconds
                cap = 5.milliseconds
                jitter = Jitter.FULL
                maxElapsed = 3.seconds
                attemptTimeout = 150.milliseconds
            }
        }

    /** Who resumes a coroutine of the engine is held up now and then, for instance between telling the coroutine of its end and telling OkHttp's call. */
    private val heldUp =
        OkHttp.config {
            dispatcher =
                object : CoroutineDispatcher() {
                    override fun dispatch(
                        context: CoroutineContext,
                        block: Runnable,
                    ) {
                        Dispatchers.IO.dispatch(context, block)
                        if (Random.nextInt(8) == 0) Thread.sleep(Random.nextLong(100))
                    }
                }
        }

    @TestFactory
    fun `no order without a key arrives twice`(): List<DynamicTest> =
        mapOf("OkHttp" to OkHttp, "OkHttp, held up" to heldUp, "CIO" to CIO).map { (name, engine) ->
            dynamicTest(name) { runBlocking(Dispatchers.Default) { withTimeout(5.minutes) { attack(engine) } } }
        }

    private suspend fun attack(engine: HttpClientEngineFactory<*>) {
        val arrived = ConcurrentHashMap<String, AtomicInteger>()
        val said = ConcurrentHashMap<String, Boolean>()
        val app = Comeback { listener = RetryListener { if (it is RetryEvent.Finished) said[it.label.orEmpty()] = it.mayHaveArrived } }
        faultyServer(arrived).use { server ->
            val refreshes = HttpClient(engine)
            HttpClient(engine) {
                install(app.ktorPlugin) {
                    label = { it.headers[ORDER] }
                }
            }.use { client ->
                client.plugin(HttpSend).intercept { request ->
                    when (request.headers[INNER]) {
                        "refresh" -> {
                            execute(request).also {
                                if (it.response.status.value !=
                                    200
                                ) {
                                    refreshes.post("http://127.0.0.1:$refused/")
                                }
                            }
                        }

                        "failover" -> {
                            try {
                                execute(request)
                            } catch (_: IOException) {
                                request.url("http://127.0.0.1:$refused/")
                                execute(request)
                            }
                        }

                        "again" -> {
                            // A Comeback further in, which stands down.
                            client.post("http://127.0.0.1:$refused/") { retryPolicy(policies[0]) }.call
                            execute(request)
                        }

                        else -> {
                            execute(request)
                        }
                    }
                }
                repeat(ORDERS / AT_ONCE) { round -> round(client, server, round, said) }
            }
            refreshes.close()
            delay(500.milliseconds)
        }
        app.close()
        assertTrue(arrived.size > ORDERS / 2, "${arrived.size}")
        assertEquals(emptyMap(), arrived.filterValues { it.get() > 1 })
        assertEquals(emptySet(), said.filterValues { !it }.keys.intersect(arrived.keys), "said not to have arrived")
        assertEquals(emptySet(), arrived.keys - said.keys)
    }

    private suspend fun round(
        client: HttpClient,
        server: ScriptedServer,
        round: Int,
        said: Map<String, Boolean>,
    ) = coroutineScope {
        (0 until AT_ONCE)
            .map { index ->
                val order = "$round-$index"
                val random = Random(round * AT_ONCE + index)
                val cancelAfter = if (random.nextInt(4) == 0) random.nextInt(200) else null
                async {
                    val call = launch { order(client, server, order, random, said) }
                    if (cancelAfter != null) {
                        delay(cancelAfter.milliseconds)
                        call.cancel()
                    }
                    call.join()
                }
            }.awaitAll()
    }

    private suspend fun order(
        client: HttpClient,
        server: ScriptedServer,
        order: String,
        random: Random,
        said: Map<String, Boolean>,
    ) {
        val port = if (random.nextInt(10) == 0) refused else server.port
        val left = runCatching { client.post("http://127.0.0.1:$port/") { describe(order, random) } }.exceptionOrNull()
        if (left != null &&
            left !is kotlinx.coroutines.CancellationException
        ) {
            assertEquals(said[order], left.mayHaveArrived, "$order $left")
        }
    }

    private fun HttpRequestBuilder.describe(
        order: String,
        random: Random,
    ) {
        header(ORDER, order)
        header(INNER, listOf("none", "none", "refresh", "failover", "again").random(random))
        retryPolicy(policies.random(random))
        if (random.nextBoolean()) {
            setBody("order")
        } else {
            setBody(
                object : OutgoingContent.WriteChannelContent() {
                    override val contentLength = 5L

                    override suspend fun writeTo(channel: ByteWriteChannel) = channel.writeStringUtf8("order")
                },
            )
            if (random.nextBoolean()) replayableBody()
        }
    }

    private fun faultyServer(arrived: MutableMap<String, AtomicInteger>): ScriptedServer =
        ScriptedServer(
            readsBody = { number -> number % 11 != 0 },
            onHead = { head ->
                val order = Regex("(?i)\n$ORDER: (\\S+)").find(head)?.groupValues?.get(1)
                if (order != null) arrived.getOrPut(order) { AtomicInteger() }.incrementAndGet()
            },
        ) { number ->
            when (Random(number).nextInt(10)) {
                0 -> {
                    reset()
                }

                1 -> {
                    end()
                }

                2 -> {
                    say("HTTP/1.1 408 X\r\nContent-Length: 0\r\n\r\n")
                }

                3 -> {
                    say("HTTP/1.1 503 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")
                }

                4 -> {
                    status(503)
                }

                5 -> {
                    say("HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\n01234")
                    reset()
                }

                6 -> {
                    Thread.sleep(250)
                    status(200)
                }

                7 -> {
                    // The next one on this connection meets its end.
                    status(200)
                    end()
                }

                else -> {
                    status(200)
                }
            }
        }

    private companion object {
        const val ORDERS = 3_000
        const val AT_ONCE = 50
        const val ORDER = "X-Order"
        const val INNER = "X-Inner"
    }
}
