// Answers every request of the benchmarks with 200 and nothing, and allocates next to nothing for it.
package dev.comeback.bench

import java.io.Closeable
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import kotlin.concurrent.thread

internal class LoopbackServer : Closeable {
    private val socket = ServerSocket(0, 50, InetAddress.getLoopbackAddress())
    val port: Int get() = socket.localPort

    init {
        thread(isDaemon = true) {
            while (!socket.isClosed) {
                val client = runCatching { socket.accept() }.getOrNull() ?: break
                thread(isDaemon = true) { client.use { runCatching { serve(it) } } }
            }
        }
    }

    /** A request ends with the only body there is, or, without one, with the empty line. */
    private fun serve(client: Socket) {
        client.tcpNoDelay = true
        val buffer = ByteArray(4096)
        var length = 0
        while (true) {
            val read = client.getInputStream().read(buffer, length, buffer.size - length)
            if (read < 0) return
            length += read
            val isPost = buffer[0] == 'P'.code.toByte()
            if (buffer.endsWith(if (isPost) BODY else EMPTY_LINE, length)) {
                client.getOutputStream().write(ANSWER)
                length = 0
            }
        }
    }

    private fun ByteArray.endsWith(
        end: ByteArray,
        length: Int,
    ): Boolean = length >= end.size && end.indices.all { this[length - end.size + it] == end[it] }

    override fun close() = socket.close()

    private companion object {
        val ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".toByteArray()
        val EMPTY_LINE = "\r\n\r\n".toByteArray()
        val BODY = "\r\n\r\norder".toByteArray()
    }
}
