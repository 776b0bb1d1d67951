// With read_body an answer whose connection ends anywhere comes whole, after one more attempt. By default at some bytes of it;
// -Dcomeback.answers.step=1 ends it at every byte.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.RetryPolicy
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.request.get
import io.ktor.client.request.prepareGet
import io.ktor.client.statement.bodyAsText
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import java.util.concurrent.ConcurrentHashMap
import kotlin.test.assertEquals
import kotlin.time.Duration.Companion.milliseconds

class HalfAnswersTest {
    private val app = Comeback()
    private val reading =
        RetryPolicy {
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
            readBody = 64 * 1024
        }

    @AfterEach
    fun close() = app.close()

    private val engines: Map<String, HttpClientEngineFactory<*>> = mapOf("OkHttp" to OkHttp, "CIO" to CIO)
    private val answers =
        mapOf(
            "with its length" to "HTTP/1.1 200 X\r\nContent-Length: ${BODY.length}\r\n\r\n$BODY",
            "in chunks" to
                "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n" +
                BODY.chunked(CHUNK).joinToString("") { "${it.length.toString(16)}\r\n$it\r\n" } + "0\r\n\r\n",
        )

    @TestFactory
    fun `an answer that ends anywhere comes whole, after one more attempt`(): List<DynamicTest> =
        engines.flatMap { (name, engine) ->
            answers.flatMap { (kind, answer) ->
                listOf("ends", "is reset").map { end ->
                    dynamicTest("$name, $kind, the connection $end") { brokenOff(engine, answer, isReset = end == "is reset") }
                }
            }
        }

    private fun brokenOff(
        engine: HttpClientEngineFactory<*>,
        answer: String,
        isReset: Boolean,
    ) {
        val asked = ConcurrentHashMap<Int, Int>()
        var latest = 0
        // Its path says after how many bytes the first answer ends.
        ScriptedServer(onHead = { head -> latest = head.substringAfter('/').substringBefore(' ').toInt() }) {
            if (asked.merge(latest, 1, Int::plus) == 1) {
                say(answer.take(latest))
                if (isReset) reset() else end()
            } else {
                say(answer)
            }
        }.use { server ->
            HttpClient(engine) {
                install(app.ktorPlugin) {
                    policy = reading
                }
            }.use { client ->
                runBlocking(Dispatchers.Default) {
                    for (bytes in answer.indices step STEP) {
                        // CIO takes an end between two chunks for the body's, and tells nobody.
                        if (engine === CIO && !isReset && endsBetweenChunks(answer, bytes)) continue
                        val url = "${server.url}$bytes"
                        // Streamed, or read by Ktor itself.
                        val body = if (bytes % 2 == 0) client.prepareGet(url).execute { it.bodyAsText() } else client.get(url).bodyAsText()
                        assertEquals(BODY, body, "it ended after $bytes bytes")
                        assertEquals(2, asked[bytes], "after $bytes bytes")
                    }
                }
            }
        }
    }

    private fun endsBetweenChunks(
        answer: String,
        bytes: Int,
    ): Boolean {
        val head = answer.indexOf("\r\n\r\n") + 4
        val chunk = "5dc\r\n\r\n".length + CHUNK
        return "chunked" in answer.take(head) && bytes >= head && (bytes - head) % chunk == 0
    }

    private companion object {
        const val CHUNK = 1_500
        val BODY = "0123456789".repeat(2_000)
        val STEP = Integer.getInteger("comeback.answers.step", 331)
    }
}
