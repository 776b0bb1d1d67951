package dev.comeback.demo

import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Test
import java.net.InetAddress
import java.net.Socket
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals
import kotlin.test.assertTrue

/** The shop's promises, over real HTTP. */
class OrderServerTest {
    private val taken = CountDownLatch(1)
    private val server =
        OrderServer {
            taken.countDown()
            0
        }
    private val http = OkHttpClient()

    @AfterEach
    fun close() {
        server.close()
        http.dispatcher.executorService.shutdown()
        http.connectionPool.evictAll()
    }

    @Test
    fun `without a key every send is another order`() {
        assertNotEquals(order(tap = 7), order(tap = 7))
        assertEquals(ServerCounts(sends = 2, replays = 0, ordersByTap = mapOf(7 to 2)), server.counts())
    }

    @Test
    fun `a key seen before returns the stored answer and makes no order`() {
        val first = order(tap = 7, key = "a")
        assertEquals(201 to """{"order":1,"tap":7}""", first)
        assertEquals(first, order(tap = 7, key = "a"))
        assertEquals(ServerCounts(sends = 2, replays = 1, ordersByTap = mapOf(7 to 1)), server.counts())
    }

    @Test
    fun `another key is another order`() {
        order(tap = 7, key = "a")
        order(tap = 8, key = "b")
        assertEquals(ServerCounts(sends = 2, replays = 0, ordersByTap = mapOf(7 to 1, 8 to 1)), server.counts())
    }

    @Test
    fun `orders beyond one for each tap are duplicates`() {
        repeat(3) { order(tap = 1) }
        repeat(2) { order(tap = 2) }
        order(tap = 3)
        assertEquals(6, server.counts().orders)
        assertEquals(3, server.counts().duplicates)
    }

    @Test
    fun `a request that is no order is refused and not counted`() {
        assertEquals(400, send(Request.Builder().post("{}".toRequestBody())).first)
        assertEquals(405, send(Request.Builder().delete()).first)
        assertEquals(ServerCounts(sends = 0, replays = 0, ordersByTap = emptyMap()), server.counts())
    }

    @Test
    fun `reading tells how many orders there are, and is none`() {
        assertEquals(200 to """{"orders":0}""", send(Request.Builder()))
        order(tap = 7)
        assertEquals(200 to """{"orders":1}""", send(Request.Builder()))
        assertEquals(1, server.counts().sends)
    }

    @Test
    fun `an order is taken even when nobody is left to hear the answer`() {
        Socket(InetAddress.getLoopbackAddress(), server.port).use { socket ->
            socket.getOutputStream().write(
                "POST /orders HTTP/1.1\r\nHost: shop\r\nIdempotency-Key: a\r\nContent-Length: 9\r\n\r\n{\"tap\":7}".toByteArray(),
            )
            assertTrue(taken.await(10, TimeUnit.SECONDS))
            socket.setSoLinger(true, 0) // a reset, as when the link dies
        }
        order(tap = 7, key = "a")
        assertEquals(ServerCounts(sends = 2, replays = 1, ordersByTap = mapOf(7 to 1)), server.counts())
    }

    private fun order(
        tap: Int,
        key: String? = null,
    ): Pair<Int, String> {
        val request = Request.Builder().post("""{"tap":$tap}""".toRequestBody())
        if (key != null) request.header("Idempotency-Key", key)
        return send(request)
    }

    private fun send(request: Request.Builder): Pair<Int, String> =
        http.newCall(request.url("http://127.0.0.1:${server.port}/orders").build()).execute().use { it.code to it.body.string() }
}
