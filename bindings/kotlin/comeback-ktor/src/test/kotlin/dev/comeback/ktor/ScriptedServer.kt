// A server on loopback that answers each request as a script says, also in ways no HTTP server would.
package dev.comeback.ktor

import java.io.BufferedInputStream
import java.io.IOException
import java.io.InputStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread

/** Answers request [number], from 1, by [answer]. Before that it reads the request's body, unless [readsBody] says otherwise. */
internal class ScriptedServer(
    private val readsBody: (number: Int) -> Boolean = { true },
    private val onHead: (head: String) -> Unit = {},
    private val answer: Answer.(number: Int) -> Unit,
) : AutoCloseable {
    class Answer(
        private val socket: Socket,
        /** From 1. */
        val connection: Int,
    ) {
        var keepsConnection = true

        fun say(text: String) {
            socket.getOutputStream().apply { write(text.encodeToByteArray()) }.flush()
        }

        fun status(
            code: Int,
            body: String = "",
            headers: String = "",
        ) = say("HTTP/1.1 $code X\r\n${headers}Content-Length: ${body.length}\r\n\r\n$body")

        /** The connection ends here, in order. */
        fun end() {
            keepsConnection = false
        }

        /** The connection is reset here. */
        fun reset() {
            socket.setSoLinger(true, 0)
            keepsConnection = false
        }

        /** Nothing comes until the client goes away. */
        fun stall() {
            while (socket.getInputStream().read() >= 0) {
                // And on.
            }
            keepsConnection = false
        }
    }

    private val listening = ServerSocket(0, 1_000, InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1)))
    private val open = CopyOnWriteArrayList<Socket>()
    private val requests = AtomicInteger()
    val port: Int = listening.localPort
    val url = "http://127.0.0.1:$port/"

    /** Heads of the requests that came in. */
    val heads = CopyOnWriteArrayList<String>()

    /** The connections they came over, from 1. */
    val connections = CopyOnWriteArrayList<Int>()

    /** Their bodies. */
    val bodies = CopyOnWriteArrayList<String>()

    init {
        thread(isDaemon = true) {
            quietly {
                while (true) {
                    val socket = listening.accept()
                    open += socket
                    val connection = open.size
                    thread(isDaemon = true) { quietly { socket.use { serve(it, connection) } } }
                }
            }
        }
    }

    private fun serve(
        socket: Socket,
        connection: Int,
    ) {
        val input = BufferedInputStream(socket.getInputStream())
        while (true) {
            val head = generateSequence { line(input) }.takeWhile { it.isNotEmpty() }.joinToString("\n")
            if (head.isEmpty()) return
            val length =
                Regex("(?i)\ncontent-length: (\\d+)")
                    .find(head)
                    ?.groupValues
                    ?.get(1)
                    ?.toInt() ?: 0
            onHead(head)
            val number = requests.incrementAndGet()
            val body =
                if (!readsBody(number)) {
                    ByteArray(0)
                } else if (isChunked(head)) {
                    chunks(input) ?: return
                } else {
                    bytes(input, length)
                        ?: return
                }
            heads += head
            connections += connection
            bodies += body.decodeToString()
            val answer = Answer(socket, connection)
            answer.answer(number)
            if (!answer.keepsConnection) return
        }
    }

    private fun isChunked(head: String) = "\ntransfer-encoding: chunked" in head.lowercase()

    /** Null if the other side went away before all was there. */
    private fun bytes(
        input: InputStream,
        length: Int,
    ): ByteArray? {
        val body = ByteArray(length)
        var read = 0
        while (read < length) read += input.read(body, read, length - read).also { if (it < 0) return null }
        return body
    }

    private fun chunks(input: InputStream): ByteArray? {
        val body = java.io.ByteArrayOutputStream()
        while (true) {
            val length = line(input)?.toIntOrNull(16) ?: return null
            body.write(bytes(input, length) ?: return null)
            line(input)
            if (length == 0) return body.toByteArray()
        }
    }

    private fun line(input: InputStream): String? {
        val line = StringBuilder()
        while (true) {
            val byte = input.read()
            if (byte < 0) return null
            if (byte == '\n'.code) return line.toString().trimEnd('\r')
            line.append(byte.toChar())
        }
    }

    private inline fun quietly(action: () -> Unit) {
        try {
            action()
        } catch (_: IOException) {
            // The other side went away.
        }
    }

    override fun close() {
        listening.close()
        open.forEach { quietly { it.close() } }
    }
}
