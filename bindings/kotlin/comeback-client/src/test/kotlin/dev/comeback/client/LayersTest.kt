// Inside an attempt of another layer the client stands down, and tells what it sends.
package dev.comeback.client

import dev.comeback.driver.OuterAttempt
import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

class LayersTest {
    private fun <T> inside(
        outer: OuterAttempt,
        block: suspend () -> T,
    ): T = OuterAttempt.inside(outer) { soon { block() } }

    @Test
    fun `inside an attempt a request goes once, and what its server asked is told`() =
        Server { _, exchange -> exchange.answer(503, "", "retry-after: 7\r\n") }.use { server ->
            ClientFixture().use { ground ->
                val outer = OuterAttempt()
                assertEquals(503, inside(outer) { ground.client.get(server.url) }.status)
                assertEquals(1, server.count)
                val told = outer.innerRequests.single()
                assertEquals(false to listOf("7"), told.sentNothing to told.retryAfter)
            }
        }

    @Test
    fun `what was refused is told as unsent, and what broke off as perhaps sent`() =
        Server { _, exchange -> exchange.reset() }.use { server ->
            ClientFixture().use { ground ->
                val outer = OuterAttempt()
                val refused = closedPort()
                assertFailsWith<ClientException.Failed> { inside(outer) { ground.client.post("http://127.0.0.1:$refused/") } }
                assertFailsWith<ClientException.Failed> { inside(outer) { ground.client.post(server.url) } }
                assertEquals(listOf(true, false), outer.innerRequests.map { it.sentNothing })
                assertEquals(1, server.count)
            }
        }
}
