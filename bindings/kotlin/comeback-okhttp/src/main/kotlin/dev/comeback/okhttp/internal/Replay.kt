// Checks that a body is the same in each attempt: what is written is summed, and an attempt that writes something else never reaches the server whole.
package dev.comeback.okhttp.internal

import dev.comeback.driver.OwnCode
import dev.comeback.driver.okhttp.OwnInterceptor
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.RequestBody
import okhttp3.Response
import okhttp3.internal.connection.RealCall
import okio.Buffer
import okio.BufferedSink
import okio.ForwardingSink
import okio.buffer
import java.io.IOException
import java.net.ProtocolException
import java.util.zip.CRC32

/**
 * What the attempts of one call wrote of [body]. The client's own re-sends within an attempt (a redirect, a token refresh) are compared with earlier attempts
 * only, not with each other.
 */
internal class Replay(
    val body: RequestBody,
) {
    /** One writing of the body: all of it, or only a beginning. */
    internal class Written(
        val length: Long,
        val sum: Long,
        val isWhole: Boolean,
    )

    /** Shortest first. */
    private var earlier = emptyList<Written>()
    private val latest = ArrayList<Written>(1)
    private var writings = 0

    /** How many attempts have begun or were left alone. */
    private var attempt = 0

    /** A writing differed from an earlier attempt's. */
    @Volatile
    var differs: Boolean = false
        private set

    @Synchronized
    fun attemptBegins() {
        earlier = (earlier + latest).sortedBy { it.length }
        latest.clear()
        attempt++
    }

    /** The attempt under way writes the body no more, though it goes on. False if it is just writing. */
    @Synchronized
    fun letGo(): Boolean {
        attempt++
        return writings == 0
    }

    /** Whether a request that announces [length] bytes can be the same as before. */
    @Synchronized
    fun check(length: Long) {
        if (earlier.any { if (it.isWhole) it.length != length else it.length > length }) throw differing()
    }

    /** The body as the attempt under way writes it, and no other attempt may. */
    @Synchronized
    fun summed(): RequestBody = SummedBody(this, attempt)

    @Synchronized
    fun writing(of: Int): Writing {
        if (of != attempt) throw IOException("Canceled")
        writings++
        return Writing(this, earlier)
    }

    @Synchronized
    fun add(written: Written) {
        latest += written
        writings--
    }

    fun differing(): IOException {
        differs = true
        return BodyDiffersException()
    }
}

/** For OkHttp a protocol error, after which it does not try again by itself. */
internal class BodyDiffersException : ProtocolException("the request's body is not the same as in an earlier attempt")

/** Sums what passes, compares it with [earlier] writings, shortest first, and keeps the last byte back until all is known to be the same. */
internal class Writing(
    private val replay: Replay,
    private val earlier: List<Replay.Written>,
) {
    private val sum = CRC32()
    private val cursor = Buffer.UnsafeCursor()
    private var length = 0L

    /** How many of [earlier] agree with what was written so far. */
    private var agreeing = 0
    private var isWhole = false

    fun write(
        body: RequestBody,
        sink: BufferedSink,
    ) {
        val counted = Counted(sink)
        try {
            val buffered = counted.buffer()
            body.writeTo(buffered)
            if (buffered.isOpen) buffered.emit()
            counted.finish()
        } finally {
            replay.add(Replay.Written(length, sum.value, isWhole))
        }
    }

    private inner class Counted(
        private val sink: BufferedSink,
    ) : ForwardingSink(sink) {
        /** At most a byte, and only after the first attempt. */
        private val held = Buffer()

        override fun write(
            source: Buffer,
            byteCount: Long,
        ) {
            count(source, byteCount)
            if (earlier.isEmpty()) return sink.write(source, byteCount)
            held.write(source, byteCount)
            sink.write(held, held.size - 1)
        }

        /** The body is free to close what it wrote to. */
        override fun close() {
            finish()
            super.close()
        }

        fun finish() {
            if (isWhole) return
            compare()
            if (agreeing < earlier.size || earlier.any { it.isWhole && it.length != length }) throw replay.differing()
            isWhole = true
            if (held.size > 0) sink.write(held, held.size)
        }
    }

    private fun count(
        source: Buffer,
        byteCount: Long,
    ) {
        var left = byteCount
        source.readUnsafe(cursor)
        try {
            while (left > 0) {
                cursor.next()
                var start = cursor.start
                val end = start + minOf(left, (cursor.end - start).toLong()).toInt()
                left -= end - start
                while (start < end) {
                    compare()
                    val until = earlier.getOrNull(agreeing)?.let { it.length - length } ?: Long.MAX_VALUE
                    val part = minOf(until, (end - start).toLong()).toInt()
                    sum.update(cursor.data!!, start, part)
                    length += part
                    start += part
                }
            }
        } finally {
            cursor.close()
        }
    }

    /** With all writings that ended where this one is now. */
    private fun compare() {
        while (agreeing < earlier.size && earlier[agreeing].length == length) {
            if (earlier[agreeing].sum != sum.value) throw replay.differing()
            agreeing++
        }
    }
}

/** Writes the body and lets [replay] see it. */
private class SummedBody(
    private val replay: Replay,
    private val attempt: Int,
) : RequestBody() {
    override fun contentType(): MediaType? = replay.body.contentType()

    override fun contentLength(): Long = replay.body.contentLength()

    override fun writeTo(sink: BufferedSink): Unit = replay.writing(attempt).write(replay.body, sink)
}

/**
 * A network interceptor, further in than the app's. It sums the app's own body, because what an interceptor makes of it may differ each time. If the app has
 * network interceptors further in, they see the app's body, and it is not summed.
 */
internal object ReplayCheck : OwnInterceptor {
    override fun intercept(chain: Interceptor.Chain): Response = proceed(chain, this)

    /** [at]: the interceptor that does it. */
    fun proceed(
        chain: Interceptor.Chain,
        at: Interceptor,
    ): Response {
        val request = chain.request()
        val replay = request.body?.let { replayOf(it, chain, at) } ?: return chain.proceed(request)
        request.header("Content-Length")?.toLongOrNull()?.let(replay::check)
        val response = chain.proceed(request.newBuilder().method(request.method, replay.summed()).build())
        return response.newBuilder().request(request).build()
    }

    private fun replayOf(
        body: RequestBody,
        chain: Interceptor.Chain,
        at: Interceptor,
    ): Replay? {
        val replay = CallLayer.find(chain.call())?.replay ?: return null
        if (replay.body !== body) return null
        val all = (chain.call() as? RealCall)?.client?.networkInterceptors ?: return null
        return replay.takeIf { all.subList(all.indexOf(at) + 1, all.size).all { it is OwnCode } }
    }
}
