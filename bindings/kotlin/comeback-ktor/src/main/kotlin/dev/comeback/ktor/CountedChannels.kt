// Channels that count and sum what a body writes, and hold its last byte back until the sums agree: a request that is not whole is none.
@file:OptIn(InternalAPI::class)

package dev.comeback.ktor

import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.ByteWriteChannel
import io.ktor.utils.io.InternalAPI
import kotlinx.io.Buffer
import kotlinx.io.Sink
import kotlinx.io.Source
import kotlinx.io.readByteArray

/**
 * The engine's [channel], as the body writes to it. [onFailure] hears why the body gave up, before the channel is closed: an engine may take the end of a
 * channel for the end of a body.
 */
internal class CountedWrites(
    private val channel: ByteWriteChannel,
    private val writing: BodySum.Writing,
    private val onFailure: (Throwable) -> Unit,
) : ByteWriteChannel {
    private val written = Buffer()
    private val last = LastByte()
    private var isOver = false

    override val autoFlush: Boolean get() = channel.autoFlush
    override val isClosedForWrite: Boolean get() = channel.isClosedForWrite
    override val closedCause: Throwable? get() = channel.closedCause
    override val writeBuffer: Sink get() = if (isClosedForWrite) channel.writeBuffer else written

    override suspend fun flush() {
        hand()
        channel.flush()
    }

    override suspend fun flushAndClose() {
        end()
        channel.flushAndClose()
    }

    override fun cancel(cause: Throwable?) {
        if (!isOver && !channel.isClosedForWrite) cause?.let(onFailure)
        isOver = true
        channel.cancel(cause)
    }

    /** The body has written all it has. */
    suspend fun end() {
        if (isOver) return
        hand()
        sameOrCancelled { writing.end() }
        isOver = true
        if (channel.isClosedForWrite) return
        last.releaseTo(channel.writeBuffer)
        channel.flush()
    }

    private fun hand() {
        if (written.exhausted()) return
        val bytes = written.readByteArray()
        sameOrCancelled { writing.add(bytes, 0, bytes.size) }
        last.holdBack(bytes, channel.writeBuffer)
    }

    private inline fun sameOrCancelled(action: () -> Unit) {
        try {
            action()
        } catch (changed: BodyChangedException) {
            cancel(changed)
            throw changed
        }
    }
}

/** The body's [channel], as the engine reads it. [onFailure] hears what the body threw, before the engine does. */
internal class CountedReads(
    private val channel: ByteReadChannel,
    private val writing: BodySum.Writing,
    private val onFailure: (Throwable) -> Unit,
) : ByteReadChannel {
    private val read = Buffer()
    private val last = LastByte()
    private var isEnded = false
    private var isCancelled = false
    private var changed: BodyChangedException? = null

    override val closedCause: Throwable? get() = changed ?: channel.closedCause

    /** A failure is no end: who reads on hears of it. */
    override val isClosedForRead: Boolean get() = isEnded && read.exhausted()
    override val readBuffer: Source get() = read

    override suspend fun awaitContent(min: Int): Boolean {
        changed?.let { throw it }
        while (read.size < min && !isEnded) {
            if (hasMore()) take() else end()
        }
        return read.size >= min
    }

    private suspend fun hasMore(): Boolean =
        try {
            channel.awaitContent() || channel.closedCause?.let { throw it } ?: false
        } catch (thrown: Throwable) {
            if (!isCancelled) onFailure(thrown)
            throw thrown
        }

    private fun take() {
        val some = Buffer()
        channel.readBuffer.readAtMostTo(some, MOST_AT_ONCE)
        val bytes = some.readByteArray()
        sameOrCancelled { writing.add(bytes, 0, bytes.size) }
        last.holdBack(bytes, read)
    }

    private fun end() {
        sameOrCancelled { writing.end() }
        isEnded = true
        last.releaseTo(read)
    }

    /** By the engine. */
    override fun cancel(cause: Throwable?) {
        isCancelled = true
        channel.cancel(cause)
    }

    private inline fun sameOrCancelled(action: () -> Unit) {
        try {
            action()
        } catch (different: BodyChangedException) {
            changed = different
            onFailure(different)
            channel.cancel(different)
            throw different
        }
    }

    private companion object {
        const val MOST_AT_ONCE = 64L * 1024
    }
}

private class LastByte {
    private var held: Byte? = null

    fun holdBack(
        bytes: ByteArray,
        sink: Sink,
    ) {
        if (bytes.isEmpty()) return
        releaseTo(sink)
        held = bytes.last()
        sink.write(bytes, 0, bytes.size - 1)
    }

    fun releaseTo(sink: Sink) {
        held?.let(sink::writeByte)
        held = null
    }
}
