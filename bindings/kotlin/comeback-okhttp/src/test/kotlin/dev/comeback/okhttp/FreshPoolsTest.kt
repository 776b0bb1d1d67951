// After the path to the network has changed nothing goes over a connection from before.
package dev.comeback.okhttp

import mockwebserver3.MockResponse
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Test
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals

internal class FreshPoolsTest {
    private fun online(test: (Ground) -> Unit) =
        Ground().use { ground ->
            ground.connectivity.available(handle = 1)
            test(ground)
        }

    /** Another default network, as from Wi-Fi to cellular. */
    private fun Ground.moveOn(handle: Long = 2) = connectivity.available(handle)

    private fun Ground.connections() = received().map { it.connectionIndex }

    private fun OkHttpClient.get(ground: Ground) = assertEquals(200, outcomeOf(ground.request()))

    @Test
    fun `on the same path connections are reused`() =
        online { ground ->
            val client = ground.client()
            repeat(3) { client.get(ground) }
            assertEquals(listOf(0, 0, 0), ground.connections())
        }

    @Test
    fun `after a handover the next call uses a fresh connection, and the old one is closed`() =
        online { ground ->
            val client = ground.client()
            client.get(ground)
            ground.moveOn()
            repeat(2) { client.get(ground) }
            ground.moveOn(handle = 3)
            client.get(ground)
            assertEquals(listOf(0, 1, 1, 2), ground.connections())
            assertEquals(0, client.connectionPool.connectionCount())
        }

    @Test
    fun `a call that waits through a handover goes on over a fresh connection`() =
        online { ground ->
            ground.server.enqueue(status(503))
            ground.time.at(1) { ground.moveOn() }
            val client = ground.client()
            client.get(ground)
            assertEquals(listOf(0, 1), ground.connections())
            assertEquals(0, client.connectionPool.connectionCount())
        }

    @Test
    fun `the connection of a call in flight at the handover is closed when that call ends`() =
        online { ground ->
            ground.server.enqueue(
                MockResponse
                    .Builder()
                    .headersDelay(500, TimeUnit.MILLISECONDS)
                    .body("slow")
                    .build(),
            )
            val client = ground.client()
            val inFlight = client.newCall(ground.request()).future()
            ground.server.takeRequest()
            ground.moveOn()
            client.get(ground)
            assertEquals(1, client.connectionPool.connectionCount())
            inFlight.get(10, TimeUnit.SECONDS).use { assertEquals("slow", it.body.string()) }
            assertEquals(0, client.connectionPool.connectionCount())
        }

    @Test
    fun `clients that share the interceptor but not the pool each get their own`() =
        online { ground ->
            val one = ground.client()
            val other = ground.remember(one.newBuilder().connectionPool(okhttp3.ConnectionPool()).build())
            ground.moveOn()
            one.get(ground)
            other.get(ground)
            one.get(ground)
            other.get(ground)
            assertEquals(listOf(0, 1, 0, 1), ground.connections())
        }
}
