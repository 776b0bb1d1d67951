// After the path to the network has changed no attempt begins on a connection from before; all connections stay in the app's own pool.
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
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertTrue

@ParameterizedClass
@EnumSource(Driver::class)
internal class ConnectionsTest(
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

    private fun Call.Factory.get(ground: LoopbackFixture) = assertEquals(200, readWhole(ground.request()))

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
            assertEquals(1, client.connectionPool.connectionCount())
        }

    @Test
    fun `after a handover as many connections are made as are needed, the app's pool keeps as many as ever, and all are used again`() =
        online { ground ->
            val client = ground.calls { dispatcher(okhttp3.Dispatcher().apply { maxRequestsPerHost = MANY }) }
            var together = CyclicBarrier(MANY)
            ground.server.dispatcher =
                object : Dispatcher() {
                    override fun dispatch(request: RecordedRequest): MockResponse {
                        together.await(10, TimeUnit.SECONDS)
                        return MockResponse()
                    }
                }

            fun connectionsOf(calls: Int): Set<Int> {
                together = CyclicBarrier(calls)
                List(calls) { client.newCall(ground.request()).future() }.forEach { it.get(10, TimeUnit.SECONDS).close() }
                return ground.connections().toSet()
            }
            val before = connectionsOf(MANY)
            ground.moveOn()
            val after = connectionsOf(MANY)
            assertEquals(MANY, (after - before).size)
            assertEventually { client.connectionPool.connectionCount() == KEPT }
            repeat(3) { assertTrue(after.containsAll(connectionsOf(KEPT))) }
        }

    @Test
    fun `a call that waits through a handover goes on over a fresh connection`() =
        online { ground ->
            ground.server.enqueue(status(503))
            ground.time.at(1) { ground.moveOn() }
            val client = ground.calls()
            client.get(ground)
            assertEquals(listOf(0, 1), ground.connections())
        }

    @Test
    fun `a call in flight at the handover goes on, and nothing else begins on its connection`() =
        online { ground ->
            assumeTrue(driver == Driver.INTERCEPTOR, "the factory begins such a call anew")
            val isOver = CountDownLatch(1)
            ground.server.dispatcher =
                object : Dispatcher() {
                    override fun dispatch(request: RecordedRequest): MockResponse {
                        if (request.url.encodedPath != "/slow") return MockResponse()
                        isOver.await(10, TimeUnit.SECONDS)
                        return MockResponse(body = "slow")
                    }
                }
            val client = ground.calls()
            val inFlight = client.newCall(ground.request(path = "/slow")).future()
            ground.server.takeRequest()
            ground.moveOn()
            client.get(ground)
            isOver.countDown()
            inFlight.get(10, TimeUnit.SECONDS).use { assertEquals("slow", it.body.string()) }
            repeat(2) { client.get(ground) }
            assertEquals(listOf(1, 1, 1), ground.connections())
        }

    /** What Android's sockets do when they are closed on the main thread. */
    private object ThrowingAtClose : UnconnectedSockets() {
        @Volatile
        var throws = true

        override fun createSocket(): Socket =
            object : Socket() {
                override fun close() {
                    super.close()
                    if (throws) throw IllegalStateException("network on the main thread")
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
            // One that is in flight at the handover.
            val response = client.send(ground.post())
            ground.moveOn(handle = 3)
            client.get(ground)
            assertEquals("fine", response.body.string())
            assertEquals(listOf(0, 1, 1, 2), ground.connections())
            ThrowingAtClose.throws = false
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

    private fun assertEventually(condition: () -> Boolean) {
        val until = System.nanoTime() + TimeUnit.SECONDS.toNanos(10)
        while (!condition()) {
            assertTrue(System.nanoTime() < until, "it did not come about")
            Thread.sleep(1)
        }
    }

    private companion object {
        const val MANY = 40

        /** What OkHttp's pool keeps idle. */
        const val KEPT = 5
    }
}
