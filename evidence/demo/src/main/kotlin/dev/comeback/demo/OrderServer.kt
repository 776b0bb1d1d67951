// The server that the clients order from; it knows what really happened.
package dev.comeback.demo

import com.sun.net.httpserver.HttpExchange
import com.sun.net.httpserver.HttpServer
import java.io.IOException
import java.net.InetAddress
import java.net.InetSocketAddress
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger

/**
 * A shop on loopback: `POST /orders` with `{"tap":7}` makes an order, unless its `Idempotency-Key` was seen before; then the
 * stored answer is given again. An order is taken as soon as its request was read; the answer takes [serverMillis] more, for
 * a replay too, and the connection may die within that time. `GET /orders` tells how many there are. It counts what really happened.
 *
 * @param at the port; 0: any that is free
 * @param onRequest hears of each request that was understood, when it was and before it is answered, in a few words
 */
internal class OrderServer(
    at: Int = 0,
    private val onRequest: (String) -> Unit = {},
    private val serverMillis: (tap: Int) -> Long,
) : AutoCloseable {
    private val sends = AtomicInteger()
    private val replays = AtomicInteger()
    private val ordersMade = AtomicInteger()
    private val ordersByTap = ConcurrentHashMap<Int, Int>()
    private val answers = ConcurrentHashMap<String, String>()
    private val threads = Executors.newCachedThreadPool { task -> Thread(task, "order server").apply { isDaemon = true } }
    private val server: HttpServer

    init {
        // Else Nagle's algorithm and a delayed acknowledgement add 40 ms to some answers.
        System.setProperty("sun.net.httpserver.nodelay", "true")
        server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), at), 0)
        server.executor = threads
        server.createContext("/orders", ::handle)
        server.start()
    }

    val port: Int get() = server.address.port

    fun counts(): ServerCounts = ServerCounts(sends.get(), replays.get(), ordersByTap.toSortedMap())

    override fun close() {
        server.stop(0)
        threads.shutdownNow()
    }

    private fun handle(exchange: HttpExchange) {
        try {
            val body = exchange.requestBody.readBytes().decodeToString()
            val tap =
                TAP
                    .find(body)
                    ?.groupValues
                    ?.get(1)
                    ?.toIntOrNull()
            when {
                exchange.requestMethod == "GET" -> tellOrders(exchange)
                exchange.requestMethod != "POST" -> answer(exchange, 405, """{"problem":"only GET and POST"}""")
                tap == null -> answer(exchange, 400, """{"problem":"expected {\"tap\":NUMBER}"}""")
                else -> takeOrder(exchange, tap)
            }
        } catch (_: IOException) {
            // The link died: nobody is left to be answered.
        } catch (_: InterruptedException) {
            // The shop closed.
        } finally {
            exchange.close()
        }
    }

    private fun tellOrders(exchange: HttpExchange) {
        onRequest("GET: read")
        answer(exchange, 200, """{"orders":${ordersMade.get()}}""")
    }

    private fun takeOrder(
        exchange: HttpExchange,
        tap: Int,
    ) {
        sends.incrementAndGet()
        val key = exchange.requestHeaders.getFirst("Idempotency-Key")
        val stored =
            if (key == null) {
                onRequest("POST tap $tap without a key: a new order")
                newOrder(tap)
            } else {
                var isNew = false
                val answer =
                    answers.computeIfAbsent(key) {
                        isNew = true
                        newOrder(tap)
                    }
                if (!isNew) replays.incrementAndGet()
                onRequest("POST tap $tap: ${if (isNew) "a new order" else "its key was seen before, the stored answer again"}")
                answer
            }
        Thread.sleep(serverMillis(tap))
        answer(exchange, 201, stored)
    }

    private fun newOrder(tap: Int): String {
        ordersByTap.merge(tap, 1, Int::plus)
        return """{"order":${ordersMade.incrementAndGet()},"tap":$tap}"""
    }

    private fun answer(
        exchange: HttpExchange,
        status: Int,
        body: String,
    ) {
        val bytes = body.encodeToByteArray()
        exchange.responseHeaders.set("Content-Type", "application/json")
        exchange.sendResponseHeaders(status, bytes.size.toLong())
        exchange.responseBody.use { it.write(bytes) }
    }

    private companion object {
        val TAP = Regex(""""tap"\s*:\s*(\d{1,9})""")
    }
}

/** What the server saw: requests received whole, those of them answered from store, and orders made for each tap. */
internal data class ServerCounts(
    val sends: Int,
    val replays: Int,
    val ordersByTap: Map<Int, Int>,
) {
    val orders: Int get() = ordersByTap.values.sum()

    /** Orders beyond one for each tap. */
    val duplicates: Int get() = ordersByTap.values.sumOf { it - 1 }
}
