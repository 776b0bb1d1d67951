// A body that is sent again is the one that was sent before, or the request does not arrive whole. And plugins further in see the app's own.
package dev.comeback.ktor

import dev.comeback.Comeback
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
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.forms.InputProvider
import io.ktor.client.request.forms.MultiPartFormDataContent
import io.ktor.client.request.forms.formData
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.client.statement.HttpResponse
import io.ktor.http.Headers
import io.ktor.http.HttpHeaders
import io.ktor.http.content.ByteArrayContent
import io.ktor.http.content.OutgoingContent
import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.ByteWriteChannel
import io.ktor.utils.io.writeFully
import io.ktor.utils.io.writeStringUtf8
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.io.Buffer
import kotlinx.io.writeString
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertSame
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes

class ReplayTest {
    private val engines: Map<String, HttpClientEngineFactory<*>> = mapOf("OkHttp" to OkHttp, "CIO" to CIO, "Java" to Java)
    private val events = CopyOnWriteArrayList<RetryEvent>()
    private val app = Comeback { listener = RetryListener { events += it } }
    private val quick =
        RetryPolicy {
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
        }

    @AfterEach
    fun close() = app.close()

    private fun each(test: suspend (HttpClient) -> Unit): List<DynamicTest> =
        engines.map { (name, engine) ->
            dynamicTest(name) {
                events.clear()
                val client =
                    HttpClient(engine) {
                        install(app.ktorPlugin) {
                            policy = quick
                        }
                    }
                client.use { runBlocking { withTimeout(1.minutes) { test(client) } } }
            }
        }

    private fun failsOnce() = ScriptedServer { number -> if (number == 1) status(503) else status(200) }

    private suspend fun HttpClient.put(
        server: ScriptedServer,
        body: HttpRequestBuilder.() -> Unit,
    ): Result<HttpResponse> =
        runCatching {
            post(server.url) {
                headers["Idempotency-Key"] = "key"
                body()
            }
        }

    private class Writes(
        private val write: suspend ByteWriteChannel.() -> Unit,
        override val contentLength: Long?,
    ) : OutgoingContent.WriteChannelContent() {
        override suspend fun writeTo(channel: ByteWriteChannel) = channel.write()
    }

    private class Reads(
        private val open: () -> ByteReadChannel,
        override val contentLength: Long?,
    ) : OutgoingContent.ReadChannelContent() {
        override fun readFrom(): ByteReadChannel = open()
    }

    private fun Result<HttpResponse>.assertNotReplayable() {
        val left = exceptionOrNull()
        assertEquals(StopReason.BodyNotReplayable, left?.retryReport?.reason, "$this")
        // The second attempt is counted and told like the first.
        assertEquals(2, left?.retryReport?.counted)
        assertEquals(listOf(503, null), left?.retryReport?.attempts?.map { it.status })
    }

    @TestFactory
    fun `a form of byte arrays goes again, byte for byte`() =
        each { client ->
            failsOnce().use { server ->
                val form =
                    formData {
                        append("name", "value")
                        append(
                            "file",
                            ByteArray(200_000) { it.toByte() },
                            Headers.build { append(HttpHeaders.ContentDisposition, "filename=a") },
                        )
                    }
                assertEquals(
                    200,
                    client
                        .put(server) { setBody(MultiPartFormDataContent(form)) }
                        .getOrThrow()
                        .status.value,
                )
                assertEquals(2, server.bodies.size)
                assertEquals(server.bodies[0], server.bodies[1])
                assertTrue(server.bodies[0].length > 200_000)
            }
        }

    @TestFactory
    fun `a form with a stream that is drained does not arrive a second time, and the reason says why`() =
        each { client ->
            failsOnce().use { server ->
                val once = Buffer().apply { writeString("photo") }
                val form =
                    formData {
                        append(
                            "file",
                            InputProvider { once },
                            Headers.build { append(HttpHeaders.ContentDisposition, "filename=a") },
                        )
                    }
                client.put(server) { setBody(MultiPartFormDataContent(form)) }.assertNotReplayable()
                assertEquals(1, server.bodies.size)
            }
        }

    @TestFactory
    fun `a writer that is vouched for and writes something else does not arrive, at whatever length`() =
        each { client ->
            for (second in listOf("", "orde", "odrer", "orderorder")) {
                for (length in listOf(5L, null)) {
                    failsOnce().use { server ->
                        var writes = 0
                        val body = Writes({ writeStringUtf8(if (writes++ == 0) "order" else second) }, length)
                        val left =
                            client.put(server) {
                                setBody(body)
                                replayableBody()
                            }
                        left.assertNotReplayable()
                        assertEquals(1, server.bodies.size, "$second $length")
                    }
                }
            }
        }

    @TestFactory
    fun `a channel that is vouched for is the same each time, or does not arrive`() =
        each { client ->
            val big = ByteArray(300_000) { (it * 7).toByte() }
            failsOnce().use { server ->
                val left =
                    client.put(server) {
                        setBody(Reads({ ByteReadChannel(big) }, big.size.toLong()))
                        replayableBody()
                    }
                assertEquals(200, left.getOrThrow().status.value)
                assertEquals(server.bodies[0], server.bodies[1])
            }
            failsOnce().use { server ->
                val drained = ByteReadChannel(big)
                val left =
                    client.put(server) {
                        setBody(Reads({ drained }, big.size.toLong()))
                        replayableBody()
                    }
                // The Java engine cancels a channel that it has read, which then fails by itself.
                assertTrue(
                    left.exceptionOrNull()?.retryReport?.reason in listOf(StopReason.BodyNotReplayable, StopReason.Permanent),
                    "$left",
                )
                assertEquals(1, server.bodies.size)
            }
        }

    @TestFactory
    fun `a writer that flushes and closes by itself arrives whole, and goes again`() =
        each { client ->
            failsOnce().use { server ->
                val body =
                    Writes({
                        repeat(1000) { writeFully("0123456789".encodeToByteArray()) }
                        flush()
                        flushAndClose()
                    }, 10_000)
                val left =
                    client.put(server) {
                        setBody(body)
                        replayableBody()
                    }
                assertEquals(200, left.getOrThrow().status.value)
                assertEquals(List(2) { "0123456789".repeat(1000) }, server.bodies.toList())
            }
        }

    @TestFactory
    fun `an array that the app has changed meanwhile is not sent again`() =
        each { client ->
            val bytes = "order".encodeToByteArray()
            ScriptedServer {
                bytes[0] = 'b'.code.toByte()
                status(503)
            }.use { server ->
                client.put(server) { setBody(ByteArrayContent(bytes)) }.assertNotReplayable()
                assertEquals(listOf("order"), server.bodies.toList())
            }
        }

    @TestFactory
    fun `bytes that are made anew each time are compared too`() =
        each { client ->
            failsOnce().use { server ->
                var made = 0
                val body =
                    object : OutgoingContent.ByteArrayContent() {
                        override val contentLength = 6L

                        override fun bytes() = "order${made++}".encodeToByteArray()
                    }
                client.put(server) { setBody(body) }.assertNotReplayable()
                assertEquals(1, server.bodies.size)
            }
        }

    @TestFactory
    fun `a plugin further in that writes another body for each attempt is believed where it puts bytes`() =
        each { client ->
            failsOnce().use { server ->
                var number = 0
                client.plugin(HttpSend).intercept { request ->
                    request.setBody(ByteArrayContent("signed ${number++}".encodeToByteArray()))
                    execute(request)
                }
                assertEquals(
                    200,
                    client
                        .put(server) { setBody("order") }
                        .getOrThrow()
                        .status.value,
                )
                assertEquals(listOf("signed 0", "signed 1"), server.bodies.toList())
            }
        }

    @TestFactory
    fun `plugins further in see the app's own body, on each attempt`() =
        each { client ->
            failsOnce().use { server ->
                val body = Writes({ writeStringUtf8("order") }, 5)
                val seen = ArrayList<Any>()
                client.plugin(HttpSend).intercept { request ->
                    seen += request.body
                    execute(request)
                }
                client.put(server) {
                    setBody(body)
                    replayableBody()
                }
                assertEquals(2, seen.size)
                seen.forEach { assertSame<Any>(body, it) }
            }
        }

    @TestFactory
    fun `a body that is cut off at any place and goes again is the same`() =
        each { client ->
            val body = ByteArray(20_000) { it.toByte() }
            ScriptedServer(readsBody = { number -> number > 2 }) { number -> if (number > 2) status(200) else reset() }.use { server ->
                val left =
                    client.put(server) {
                        setBody(Writes({ writeFully(body) }, body.size.toLong()))
                        replayableBody()
                    }
                assertEquals(200, left.getOrThrow().status.value)
                assertContentEquals(body.decodeToString().toCharArray(), server.bodies.last().toCharArray())
            }
        }
}
