// After the path to the network has changed nothing goes over a connection from before.
package dev.comeback.okhttp

import mockwebserver3.Dispatcher
import mockwebserver3.MockResponse
import mockwebserver3.RecordedRequest
import okhttp3.Call
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.net.Socket
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals

@ParameterizedClass
@EnumSource(Driver::class)
internal class FreshPoolsTest(
    private val driver: Driver,
) {
    private fun online(test: (LoopbackFixture) -> Unit) =
        LoopbackFixture(driver = driver).use { ground ->
            ground.connectivity.available(handle = 1)
            test(ground)
        }

    /** Another default network, as from Wi-Fi to cellular. */
    private fun LoopbackFixture.moveOn(handle: Long = 2) = connectivity.available(handle)

    private fun LoopbackFixture.connections() = received().map { it.connectionIndex }

    private fun Call.Factory.get(ground: LoopbackFixture) = assertEquals(200, outcomeOf(ground.request()))

    @Test
    fun `on the same path connections are reused`() =
        online { ground ->
            val client = ground.calls()
            repeat(3) { client.get(ground) }
            assertEquals(listOf(0, 0, 0), ground.connections())
        }

    @Test
    fun `after a handover the next call uses a fresh connection, and the old one is closed`() =
        online { ground ->
            val client = ground.calls()
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
            val client = ground.calls()
            client.get(ground)
            assertEquals(listOf(0, 1), ground.connections())
            assertEquals(0, client.connectionPool.connectionCount())
        }

    @Test
    fun `the connection of a call in flight at the handover is closed when that call ends`() =
        online { ground ->
            assumeTrue(driver == Driver.INTERCEPTOR, "the factory begins such a call anew")
            val isOver = CountDownLatch(1)
            val slow = MockResponse.Builder().body("slow")
            ground.server.dispatcher =
                object : Dispatcher() {
                    override fun dispatch(request: RecordedRequest): MockResponse {
                        if (request.url.encodedPath == "/slow") isOver.await(10, TimeUnit.SECONDS)
                        return slow.build()
                    }
                }
            val client = ground.calls()
            val inFlight = client.newCall(ground.request(path = "/slow")).future()
            ground.server.takeRequest()
            ground.moveOn()
            client.get(ground)
            assertEquals(1, client.connectionPool.connectionCount())
            isOver.countDown()
            inFlight.get(10, TimeUnit.SECONDS).use { assertEquals("slow", it.body.string()) }
            assertEquals(0, client.connectionPool.connectionCount())
        }

    /** What Android's sockets do when they are closed on the main thread. */
    private object ThrowingAtClose : UnconnectedSockets() {
        override fun createSocket(): Socket =
            object : Socket() {
                override fun close() {
                    super.close()
                    throw IllegalStateException("network on the main thread")
                }
            }
    }

    @Test
    fun `an old connection that cannot be closed harms no call`() =
        online { ground ->
            val client = ground.calls { socketFactory(ThrowingAtClose) }
            client.get(ground)
            ground.moveOn()
            client.get(ground)
            // One that is in flight at the handover: then the end of its call sweeps.
            val response = client.send(ground.post())
            ground.moveOn(handle = 3)
            client.get(ground)
            assertEquals("fine", response.body.string())
            assertEquals(listOf(0, 1, 1, 2), ground.connections())
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
