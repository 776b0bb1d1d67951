// A server of bare sockets: it sees when a connection comes and when it ends, and answers as told.
package dev.comeback.client

import java.io.BufferedReader
import java.io.OutputStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import javax.net.ServerSocketFactory
import kotlin.concurrent.thread

/** What came over one connection. */
class Exchange(
    val requestLine: String,
    val headers: List<String>,
    val body: String,
    val output: OutputStream,
    private val socket: Socket,
) {
    /** Set when the client ended the connection while this was being answered. */
    val ended = CountDownLatch(1)

    @Volatile
    var endedAt = 0L

    fun write(text: String) {
        output.write(text.toByteArray())
        output.flush()
    }

    fun answer(
        status: Int,
        body: String = "",
        header: String = "",
    ) {
        write("HTTP/1.1 $status .\r\ncontent-length: ${body.toByteArray().size}\r\n$header\r\n$body")
    }

    fun reset() {
        socket.setSoLinger(true, 0)
        socket.close()
    }

    /** Says nothing, until the client ends the connection. */
    fun hang() {
        try {
            while (socket.getInputStream().read() >= 0) Unit
        } catch (_: java.io.IOException) {
            // Ended with a reset.
        }
        endedAt = System.nanoTime()
        ended.countDown()
    }
}

class Server(
    factory: ServerSocketFactory = ServerSocketFactory.getDefault(),
    private val answer: (attempt: Int, Exchange) -> Unit,
) : AutoCloseable {
    private val socket = factory.createServerSocket(0, 200, InetAddress.getLoopbackAddress())
    private val open = CopyOnWriteArrayList<Socket>()
    private val requests = AtomicInteger()
    val arrived = LinkedBlockingQueue<Exchange>()
    val count: Int get() = requests.get()
    val url: String = "http://127.0.0.1:${socket.localPort}/"
    val port: Int = socket.localPort

    init {
        thread(isDaemon = true, name = "server") {
            while (true) {
                val connection =
                    try {
                        socket.accept()
                    } catch (_: java.io.IOException) {
                        return@thread
                    }
                open += connection
                thread(isDaemon = true, name = "server-connection") { serve(connection) }
            }
        }
    }

    private fun serve(connection: Socket) {
        try {
            val reader = connection.getInputStream().bufferedReader(Charsets.ISO_8859_1)
            while (true) {
                val exchange = read(reader, connection) ?: return
                val attempt = requests.incrementAndGet()
                arrived += exchange
                answer(attempt, exchange)
            }
        } catch (_: java.io.IOException) {
            // The client went away.
        } finally {
            open -= connection
            connection.close()
        }
    }

    private fun read(
        reader: BufferedReader,
        connection: Socket,
    ): Exchange? {
        val line = reader.readLine() ?: return null
        val headers = generateSequence { reader.readLine() }.takeWhile { it.isNotEmpty() }.toList()
        val length =
            headers
                .firstOrNull { it.startsWith("content-length:", ignoreCase = true) }
                ?.substringAfter(':')
                ?.trim()
                ?.toInt() ?: 0
        val body =
            CharArray(length).also {
                var at = 0
                while (at < length) at += reader.read(it, at, length - at)
            }
        return Exchange(line, headers, String(body), connection.getOutputStream(), connection)
    }

    fun next(): Exchange = checkNotNull(arrived.poll(10, TimeUnit.SECONDS)) { "no request came" }

    override fun close() {
        socket.close()
        open.forEach(Socket::close)
    }
}

/** A port nobody listens on. */
fun closedPort(): Int = ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { it.localPort }
