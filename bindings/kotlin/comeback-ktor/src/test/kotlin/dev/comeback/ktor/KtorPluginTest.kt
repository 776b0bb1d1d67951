// How an app installs the plugin.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.testing.schedulerTime
import io.ktor.client.HttpClient
import io.ktor.client.engine.mock.MockEngine
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
