// How an app installs the plugin.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.testing.schedulerTime
import io.ktor.client.HttpClient
import io.ktor.client.engine.mock.MockEngine
import io.ktor.client.plugins.HttpRequestRetry
import io.ktor.client.request.get
import io.ktor.http.HttpStatusCode
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import kotlin.test.assertEquals

class KtorPluginTest {
    @Test
    fun `a value named comeback installs its plugin, with options or without`() =
        runTest {
            val comeback = Comeback { schedulerTime(testScheduler) }
            var sent = 0
            val engine = MockEngine { status(if (++sent % 2 == 1) 503 else 200) }
            val clients =
                listOf(
                    HttpClient(engine) { install(comeback.ktorPlugin) },
                    HttpClient(engine) { install(comeback.ktorPlugin) { policy = RetryPolicy.READ } },
                )
            for (client in clients) assertEquals(HttpStatusCode.OK, client.get("http://host/").status)
            assertEquals(4, sent)
        }

    @Test
    fun `HttpRequestRetry beside it is told once, with what to remove`() =
        runTest {
            for (isFirst in listOf(true, false)) {
                val heard = mutableListOf<RetryEvent>()
                val comeback =
                    Comeback {
                        schedulerTime(testScheduler)
                        listener = RetryListener { heard += it }
                    }
                val client =
                    HttpClient(MockEngine { status(200) }) {
                        if (isFirst) install(HttpRequestRetry)
                        install(comeback.ktorPlugin)
                        if (!isFirst) install(HttpRequestRetry)
                    }
                repeat(2) { client.get("http://host/") }
                assertEquals(
                    "Comeback: a Ktor client has HttpRequestRetry and Comeback's plugin, and each repeats what the other has repeated: " +
                        "remove install(HttpRequestRetry)",
                    heard.filterIsInstance<RetryEvent.SetupProblem>().single().toString(),
                )
            }
        }

    @Test
    fun `the plugins of two Comebacks in one client are one layer`() =
        runTest {
            val comeback = Comeback { schedulerTime(testScheduler) }
            var sent = 0
            val client =
                HttpClient(MockEngine { status(503).also { sent++ } }) {
                    install(comeback.ktorPlugin) { policy = RetryPolicy.PAYMENT }
                    install(Comeback { schedulerTime(testScheduler) }.ktorPlugin)
                }
            client.get("http://host/")
            assertEquals(3, sent)
        }
}
