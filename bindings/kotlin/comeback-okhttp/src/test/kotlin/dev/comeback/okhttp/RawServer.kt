// Servers that misbehave in ways MockWebServer cannot: half a response head, a GOAWAY that disowns the stream.
package dev.comeback.okhttp

import okio.Buffer
import okio.BufferedSink
import okio.BufferedSource
import okio.ByteString
import okio.ByteString.Companion.decodeHex
import okio.ByteString.Companion.toByteString
import okio.buffer
import okio.sink
import okio.source
import java.io.DataInputStream
import java.io.IOException
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.Semaphore
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread

/** Serves each connection on a thread of its own, by its number from 0. */
internal abstract class RawServer : AutoCloseable {
    private val listening = ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"))
    private val open = CopyOnWriteArrayList<Socket>()
    val port: Int = listening.localPort

    /** Request heads that came in. */
    val heads = AtomicInteger()

    /** Request bodies that came in whole. */
    val bodies = CopyOnWriteArrayList<ByteString>()

    fun start() {
        thread(isDaemon = true) {
            generateSequence { orClosed { listening.accept() } }.forEachIndexed { number, socket ->
                open += socket
                thread(isDaemon = true) { orClosed { socket.use { serve(number, it) } } }
            }
        }
    }

    protected abstract fun serve(
        number: Int,
        socket: Socket,
    )

    override fun close() {
        listening.close()
        open.forEach { it.close() }
    }

    private fun <T> orClosed(action: () -> T): T? =
        try {
            action()
        } catch (_: IOException) {
            null
        }
}

/** HTTP/1: its first connection breaks in the middle of a request's body or of a response's head; after that it answers 200. */
internal class BreakingServer(
    private val breaksIn: Part,
) : RawServer() {
    enum class Part { REQUEST_BODY, RESPONSE_HEAD }

    override fun serve(
        number: Int,
        socket: Socket,
    ) {
        val source = socket.source().buffer()
        val sink = socket.sink().buffer()
        while (true) {
            val head = generateSequence { source.readUtf8Line() }.takeWhile { it.isNotEmpty() }.toList()
            if (head.isEmpty()) return
            heads.incrementAndGet()
            val length = head.firstNotNullOfOrNull { it.lowercase().substringAfter("content-length: ", "").toLongOrNull() } ?: 0
            if (number == 0 && breaksIn == Part.REQUEST_BODY) {
                source.skip(length / 2)
                return
            }
            if (length > 0) bodies += source.readByteString(length)
            if (number == 0) {
                sink.writeUtf8("HTTP/1.1 20").flush()
                return
            }
            sink.writeUtf8("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").flush()
        }
    }
}

/** HTTP/2 without TLS: on its first connection it goes away before it looked at any stream, then it answers 200. */
internal class GoAwayServer : Http2Server() {
    override fun Answer.onHead() {
        if (connection == 0) goAway(last = 0)
    }

    override fun Answer.onWhole() {
        if (connection > 0) say200(ends = true)
    }
}

/** HTTP/2 without TLS. */
internal abstract class Http2Server : RawServer() {
    /** What can be said to one request. */
    inner class Answer(
        val connection: Int,
        private val stream: Int,
        private val sink: BufferedSink,
    ) {
        fun say200(ends: Boolean) = say(Buffer().writeByte(STATUS_200), ends)

        /** The name is an entry of HPACK's static table, the value a literal. */
        fun say503() = say(Buffer().writeByte(STATUS_200 and 0x0f).writeByte(3).writeUtf8("503"), ends = true)

        private fun say(
            head: Buffer,
            ends: Boolean,
        ) = sink.writeFrame(HEADERS, (if (ends) END_STREAM else 0) or END_HEADERS, stream, head)

        fun reset(code: Int) = sink.writeFrame(RST_STREAM, 0, stream, Buffer().writeInt(code))

        fun goAway(last: Int = stream) = sink.writeFrame(GOAWAY, 0, 0, Buffer().writeInt(last).writeInt(0))

        /** The connection ends here. */
        fun end(): Nothing = throw IOException("ends")
    }

    protected open fun Answer.onHead(): Unit = Unit

    protected abstract fun Answer.onWhole()

    override fun serve(
        number: Int,
        socket: Socket,
    ) {
        val source = socket.source().buffer()
        val sink = socket.sink().buffer()
        source.skip(PREFACE_SIZE)
        sink.writeFrame(SETTINGS, 0, 0)
        val body = Buffer()
        while (true) {
            val (type, flags, stream, payload) = readFrame(source)
            val answer = Answer(number, stream, sink)
            when (type) {
                SETTINGS -> if (flags and ACK == 0) sink.writeFrame(SETTINGS, ACK, 0)
                HEADERS -> heads.incrementAndGet()
                DATA -> body.writeAll(payload)
            }
            if (type == HEADERS) answer.onHead()
            if ((type != HEADERS && type != DATA) || flags and END_STREAM == 0) continue
            if (type == DATA) bodies += body.readByteString()
            answer.onWhole()
        }
    }

    private data class Frame(
        val type: Int,
        val flags: Int,
        val stream: Int,
        val payload: Buffer,
    )

    private fun readFrame(source: BufferedSource): Frame {
        val length = (source.readByte().toLong() and 0xff shl 16) or (source.readShort().toLong() and 0xffff)
        val type = source.readByte().toInt() and 0xff
        val flags = source.readByte().toInt() and 0xff
        val stream = source.readInt() and Int.MAX_VALUE
        return Frame(type, flags, stream, Buffer().also { source.readFully(it, length) })
    }

    private fun BufferedSink.writeFrame(
        type: Int,
        flags: Int,
        stream: Int,
        payload: Buffer = Buffer(),
    ) {
        val length = payload.size.toInt()
        writeByte(length shr 16).writeShort(length and 0xffff)
        writeByte(type).writeByte(flags).writeInt(stream)
        writeAll(payload)
        flush()
    }

    private companion object {
        const val PREFACE_SIZE = 24L
        const val DATA = 0
        const val HEADERS = 1
        const val RST_STREAM = 3
        const val SETTINGS = 4
        const val GOAWAY = 7
        const val ACK = 1
        const val END_STREAM = 1
        const val END_HEADERS = 4

        /** HPACK's static entry for ":status: 200". */
        const val STATUS_200 = 0x88
    }
}

/** HTTP/1: lets a test wait for what came after the head, and answers 200 when the request is whole. */
internal class CountingBytes : RawServer() {
    private val afterHead = Semaphore(0)

    fun awaitBytesAfterHead(count: Int) = check(afterHead.tryAcquire(count, 10, TimeUnit.SECONDS)) { "they did not come" }

    override fun serve(
        number: Int,
        socket: Socket,
    ) {
        val source = socket.source().buffer()
        generateSequence { source.readUtf8Line() }.takeWhile { it.isNotEmpty() }.count()
        var tail = ""
        while (!tail.endsWith("0\r\n\r\n")) {
            tail = (tail + Char(source.readByte().toInt())).takeLast(5)
            afterHead.release()
        }
        socket
            .sink()
            .buffer()
            .writeUtf8("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .flush()
    }
}

/** HTTPS: hangs up on a client that offers TLS 1.3, as some old ones do, and answers 200 to others. */
internal class NoTls13Server : RawServer() {
    override fun serve(
        number: Int,
        socket: Socket,
    ) {
        val input = DataInputStream(socket.getInputStream())
        val record = ByteArray(RECORD_HEAD).also(input::readFully)
        val length = (record[3].toInt() and 0xff shl 8) or (record[4].toInt() and 0xff)
        val hello = record + ByteArray(length).also(input::readFully)
        if (hello.toByteString().indexOf(OFFERS_TLS_13) >= 0) return
        val tls =
            Certificates.server.sslSocketFactory().createSocket(socket, hello.inputStream(), true)
        val source = tls.source().buffer()
        val head = generateSequence { source.readUtf8Line() }.takeWhile { it.isNotEmpty() }.toList()
        if (head.isEmpty()) return
        heads.incrementAndGet()
        source.skip(head.firstNotNullOfOrNull { it.lowercase().substringAfter("content-length: ", "").toLongOrNull() } ?: 0)
        tls
            .sink()
            .buffer()
            .writeUtf8("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .flush()
        source.exhausted()
    }

    private companion object {
        const val RECORD_HEAD = 5

        /** The extension supported_versions with TLS 1.3 and 1.2, as Java writes it. */
        val OFFERS_TLS_13 = "002b00050403040303".decodeHex()
    }
}

/** HTTP/1: answers every request with what is no response. */
internal class SpeakingGarbage : RawServer() {
    override fun serve(
        number: Int,
        socket: Socket,
    ) {
        val source = socket.source().buffer()
        generateSequence { source.readUtf8Line() }.takeWhile { it.isNotEmpty() }.count()
        heads.incrementAndGet()
        socket
            .sink()
            .buffer()
            .writeUtf8("SSH-2.0 who are you?\r\n\r\n")
            .flush()
        source.readByte()
    }
}

/** A proxy that answers every CONNECT with [code]. */
internal class TunnelRefusing(
    private val code: Int,
) : RawServer() {
    override fun serve(
        number: Int,
        socket: Socket,
    ) {
        val source = socket.source().buffer()
        generateSequence { source.readUtf8Line() }.takeWhile { it.isNotEmpty() }.count()
        heads.incrementAndGet()
        socket
            .sink()
            .buffer()
            .writeUtf8("HTTP/1.1 $code No\r\nContent-Length: 0\r\n\r\n")
            .flush()
    }
}
