// A server of bare sockets for one cell: it does to each request what the cell says, and keeps a record of what came.
package dev.comeback.matrix

import java.io.BufferedInputStream
import java.io.EOFException
import java.io.IOException
import java.io.InputStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.atomic.AtomicInteger

/** One request that came, or began to. */
internal class Arrival(
    val path: String,
    /** Null where only the first line was read. */
    val head: List<String>?,
    val wasReused: Boolean,
) {
    /** Whether its body came to the end too. */
    @Volatile
    var isComplete = false

    val key: String? get() = header("idempotency-key")
    val hasToken: Boolean get() = header("authorization") == "Bearer $VALID_TOKEN"

    private fun header(name: String): String? =
        head?.firstOrNull { it.startsWith("$name:", ignoreCase = true) }?.substringAfter(':')?.trim()
}

internal const val VALID_TOKEN = "valid"

internal class FaultServer(
    private val cell: Cell,
) : AutoCloseable {
    private val socket = ServerSocket(0, BACKLOG, LOOPBACK)
    private val open = CopyOnWriteArrayList<Socket>()
    private val isOver = CountDownLatch(1)
    val arrivals = CopyOnWriteArrayList<Arrival>()

    /** Requests for a new token. */
    val refreshes = AtomicInteger()

    /** How many requests came over a connection that had been used before, and broke with it. */
    val brokenOnReused: Int
        get() =
            when (cell.fault) {
                Fault.DROPPED, Fault.RESET_BEFORE, Fault.RESET_AFTER -> {
                    arrivals.count {
                        it.wasReused &&
                            (cell.inner.refresh == null || it.hasToken)
                    }
                }

                else -> {
                    0
                }
            }

    val base: String = "http://127.0.0.1:${socket.localPort}"
    val mainUrl: String = if (cell.fault == Fault.REFUSED) REFUSED_URL else "$base/main"
    val warmUrl: String = "$base/warm"

    /** Answered after the attempt's end. */
    val lateUrl: String = "$base/late"
    val tokenUrl: String = if (cell.inner.refresh == Refresh.REFUSED) "$REFUSED_URL/token" else "$base/token"

    init {
        THREADS.execute {
            while (true) {
                val connection =
                    try {
                        socket.accept()
                    } catch (_: IOException) {
                        return@execute
                    }
                open += connection
                THREADS.execute { serve(connection) }
            }
        }
    }

    private fun serve(connection: Socket) {
        try {
            connection.tcpNoDelay = true
            val input = BufferedInputStream(connection.getInputStream())
            var count = 0
            while (answer(connection, input, wasReused = count++ > 0)) Unit
        } catch (_: IOException) {
            // The client went away.
        } finally {
            open -= connection
            connection.close()
        }
    }

    /** False if that was the connection's last request. */
    private fun answer(
        connection: Socket,
        input: InputStream,
        wasReused: Boolean,
    ): Boolean {
        val first = line(input) ?: return false
        val path = first.split(' ')[1]
        if (path == "/main" && cell.fault == Fault.RESET_BEFORE && cell.inner.refresh == null) {
            arrivals += Arrival(path, null, wasReused)
            return reset(connection)
        }
        val head = generateSequence { line(input) ?: throw EOFException() }.takeWhile { it.isNotEmpty() }.toList()
        val arrival = Arrival(path, head, wasReused)
        // Noted before its body is read: who has the head may act on it.
        if (path == "/main") arrivals += arrival
        if (path == "/main" && cell.fault == Fault.RESET_BEFORE && arrival.hasToken) return reset(connection)
        readBody(input, head)
        arrival.isComplete = true
        return when (path) {
            "/main" -> if (cell.inner.refresh != null && !arrival.hasToken) unauthorized(connection) else doFault(connection)
            "/token" -> refresh(connection)
            "/late" -> isOver.await(if (cell.isCut) 2 * LATE_LIMIT_MILLIS else SOON_MILLIS, MILLISECONDS).let { write(connection, 200) }
            else -> write(connection, 200)
        }
    }

    private fun doFault(connection: Socket): Boolean =
        when (cell.fault) {
            Fault.OK, Fault.STATUS_408, Fault.STATUS_421, Fault.STATUS_503 -> {
                write(connection, checkNotNull(cell.fault.status))
            }

            Fault.STATUS_503_NOW -> {
                write(connection, 503, "Retry-After: 0\r\n")
            }

            Fault.UNAUTHORIZED -> {
                unauthorized(connection)
            }

            Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.REFUSED -> {
                reset(connection)
            }

            Fault.HEAD_THEN_RESET -> {
                connection.getOutputStream().write("HTTP/1.1 200 .\r\nContent-Length: 100\r\n\r\nhalf".toByteArray())
                connection.getOutputStream().flush()
                // So that the head is read before the reset takes away what was not.
                isOver.await(HEAD_MILLIS, MILLISECONDS)
                reset(connection)
            }

            Fault.LATE -> {
                isOver.await(2 * LATE_LIMIT_MILLIS, MILLISECONDS)
                write(connection, 200)
            }

            Fault.DROPPED -> {
                false
            }
        }

    private fun refresh(connection: Socket): Boolean {
        refreshes.incrementAndGet()
        return when (cell.inner.refresh) {
            Refresh.RESET -> {
                reset(connection)
            }

            Refresh.UNAUTHORIZED -> {
                unauthorized(connection)
            }

            Refresh.TIMEOUT -> {
                isOver.await(3 * REFRESH_LIMIT_MILLIS, MILLISECONDS)
                false
            }

            else -> {
                write(connection, 200, body = VALID_TOKEN)
            }
        }
    }

    private fun unauthorized(connection: Socket) = write(connection, 401, "WWW-Authenticate: Bearer\r\n")

    private fun write(
        connection: Socket,
        status: Int,
        headers: String = "",
        body: String = "ok",
    ): Boolean {
        connection.getOutputStream().write("HTTP/1.1 $status .\r\nContent-Length: ${body.length}\r\n$headers\r\n$body".toByteArray())
        connection.getOutputStream().flush()
        return true
    }

    private fun reset(connection: Socket): Boolean {
        connection.setSoLinger(true, 0)
        connection.close()
        return false
    }

    override fun close() {
        isOver.countDown()
        socket.close()
        open.forEach(Socket::close)
    }

    internal companion object {
        private const val BACKLOG = 50
        private const val HEAD_MILLIS = 15L
        private const val SOON_MILLIS = 15L
        const val REFRESH_LIMIT_MILLIS = 100L
        private val LOOPBACK = InetAddress.getByName("127.0.0.1")

        /** No server of any cell listens on this address. */
        const val REFUSED_URL = "http://127.0.0.2:1"

        private val THREADS = Executors.newCachedThreadPool { task -> Thread(task, "server").apply { isDaemon = true } }
    }
}

/** Null at the connection's end. */
internal fun line(input: InputStream): String? {
    val text = StringBuilder()
    while (true) {
        val byte = input.read()
        if (byte < 0) return if (text.isEmpty()) null else throw EOFException()
        if (byte == '\n'.code) return text.removeSuffix("\r").toString()
        text.append(byte.toChar())
    }
}

internal fun readBody(
    input: InputStream,
    head: List<String>,
) {
    fun header(name: String) = head.firstOrNull { it.startsWith("$name:", ignoreCase = true) }?.substringAfter(':')?.trim()
    header("content-length")?.let { skip(input, it.toInt()) }
    if (header("transfer-encoding").equals("chunked", ignoreCase = true)) {
        while (true) {
            val size = checkNotNull(line(input)).substringBefore(';').toInt(radix = 16)
            skip(input, size)
            line(input)
            if (size == 0) return
        }
    }
}

private fun skip(
    input: InputStream,
    count: Int,
) {
    if (input.readNBytes(count).size < count) throw EOFException()
}
