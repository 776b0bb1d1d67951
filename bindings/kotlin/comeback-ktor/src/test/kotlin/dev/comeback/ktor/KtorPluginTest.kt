// The plugin that brings its Comeback along is the plugin.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.RetryPolicy
import io.ktor.client.HttpClient
import io.ktor.client.engine.mock.MockEngine
import io.ktor.client.engine.mock.respond
import io.ktor.client.plugins.plugin
import io.ktor.client.request.get
import io.ktor.http.HttpStatusCode
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.time.Duration.Companion.milliseconds

class KtorPluginTest {
    private val quick =
        RetryPolicy {
            jitter = Jitter.NONE
            base = 1.milliseconds
        }

    @Test
    fun `install(comeback ktorPlugin) needs no further word, and a variable may be called comeback`() =
        runTest {
            Comeback { }.use { comeback ->
                val sent = AtomicInteger()
                val engine =
                    MockEngine {
                        respond(
                            "",
                            if (sent.incrementAndGet() <
                                3
                            ) {
                                HttpStatusCode.ServiceUnavailable
                            } else {
                                HttpStatusCode.OK
                            },
                        )
                    }
                HttpClient(engine) { install(comeback.ktorPlugin) { policy = quick } }.use { client ->
                    assertEquals(HttpStatusCode.OK, client.get("http://host/").status)
                    assertEquals(3, sent.get())
                    assertNotNull(client.plugin(ComebackRetry))
                }
            }
        }

    @Test
    fun `a client has the plugin once, by whichever name it was installed`() =
        runTest {
            Comeback { }.use { app ->
                val sent = AtomicInteger()
                val engine =
                    MockEngine {
                        sent.incrementAndGet()
                        respond("", HttpStatusCode.ServiceUnavailable)
                    }
                val client =
                    HttpClient(engine) {
                        install(app.ktorPlugin) { policy = quick }
                        install(ComebackRetry) { policy = RetryPolicy(quick) { maxAttempts = 2 } }
                    }
                client.use { assertEquals(HttpStatusCode.ServiceUnavailable, it.get("http://host/").status) }
                assertEquals(2, sent.get())
            }
        }

    @Test
    fun `without a Comeback the message names the way`() {
        val refused = assertFailsWith<IllegalArgumentException> { HttpClient(MockEngine { respond("") }) { install(ComebackRetry) } }
        assertEquals("ComebackRetry needs a Comeback: install(comeback.ktorPlugin) brings it along", refused.message)
    }
}
