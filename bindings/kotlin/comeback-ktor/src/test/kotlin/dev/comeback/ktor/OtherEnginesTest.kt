// What engines other than OkHttp send again by themselves, as docs/limits.md says it.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.RetryPolicy
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.apache5.Apache5
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.java.Java
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.time.Duration.Companion.milliseconds

class OtherEnginesTest {
    private val app = Comeback { }
    private val one =
        RetryPolicy {
            maxAttempts = 1
            base = 1.milliseconds
            cap = 1.milliseconds
            jitter = Jitter.NONE
        }

    @AfterEach
    fun close() = app.close()

    private fun client(engine: HttpClientEngineFactory<*>) =
        HttpClient(engine) {
            install(app.ktorPlugin) {
                policy = one
            }
        }

    /** How often the server saw the second request of [client], whose connection it drops. */
    private fun sendsOnDropped(
        client: HttpClient,
        isOrder: Boolean,
    ): Int =
        runBlocking {
            ScriptedServer { number -> if (number == 2) end() else status(200) }.use { server ->
                client.use {
                    it.get(server.url)
                    runCatching { if (isOrder) it.post(server.url) { setBody("order") } else it.get(server.url) }
                }
                server.heads.size - 1
            }
        }

    @Test
    fun `CIO sends nothing again by itself`() {
        assertEquals(1, sendsOnDropped(client(CIO), isOrder = true))
        assertEquals(1, sendsOnDropped(client(CIO), isOrder = false))
    }

    @Test
    fun `Java sends a GET again whose connection was dropped, and no order`() {
        assertEquals(1, sendsOnDropped(client(Java), isOrder = true))
        assertEquals(2, sendsOnDropped(client(Java), isOrder = false))
    }

    @Test
    fun `Apache5 sends a GET again after a 503, unless Comeback is installed`() =
        runBlocking {
            for ((client, sends) in listOf(HttpClient(Apache5) to 2, client(Apache5) to 1)) {
                ScriptedServer { status(503) }.use { server ->
                    client.use { it.get(server.url) }
                    assertEquals(sends, server.heads.size)
                }
            }
            assertEquals(1, sendsOnDropped(client(Apache5), isOrder = false))
            assertEquals(1, sendsOnDropped(client(Apache5), isOrder = true))
        }
}
