// A request body: whether it can be sent again, whether it was handed out already, and whether it is the same each time.
package dev.comeback.ktor

import io.ktor.client.request.forms.FormDataContent
import io.ktor.client.request.forms.MultiPartFormDataContent
import io.ktor.client.utils.EmptyContent
import io.ktor.http.ContentType
import io.ktor.http.Headers
import io.ktor.http.HttpStatusCode
import io.ktor.http.content.OutgoingContent
import io.ktor.http.content.TextContent
import io.ktor.util.AttributeKey
import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.ByteWriteChannel
import io.ktor.http.content.ByteArrayContent as Bytes

/**
 * What is known of the one body of a call. Plugins further in see [content] itself; the watch is put on where it enters the engine ([entering]).
 */
internal class BodyWatch private constructor(
    private val content: OutgoingContent,
    isVouchedFor: Boolean,
) {
    private val inner = content.unwrapped()

    val exists: Boolean = inner !is OutgoingContent.NoContent

    /**
     * Judged by its type: bytes are there to be read again, a channel or a writer may be used up. The parts of a form mostly are bytes, and where one is
     * used up the sums show it.
     */
    val isReplayable: Boolean =
        !exists || inner is OutgoingContent.ByteArrayContent || inner is MultiPartFormDataContent || isVouchedFor

    private val sum = if (exists && isReplayable) BodySum() else null

    /** All that entered an engine was the app's own, and watched. */
    @Volatile
    private var isWatched = false

    /** Something else entered one. */
    @Volatile
    private var isReplaced = false

    /** An engine asked for what the body writes, which it does after a request's head. For bytes this is not known: they may be asked for earlier. */
    @Volatile
    var isAskedFor: Boolean = false
        private set

    /** What the body itself threw while it was written. */
    @Volatile
    var thrown: Throwable? = null
        private set

    /** It was not what an attempt before had written. */
    val isChanged: Boolean get() = thrown is BodyChangedException

    /** Whether it is known that nothing of it was asked for. */
    val isUntouched: Boolean get() = isWatched && !isReplaced && !isAskedFor

    /**
     * [body] as it enters the engine: of the same kind, so that engines treat it alike.
     *
     * @param end ends the attempt, at once
     * @throws BodyChangedException if these are not the bytes that were sent before
     */
    fun entering(
        body: OutgoingContent,
        end: (BodyChangedException) -> Unit,
    ): OutgoingContent {
        if (!exists || body is OutgoingContent.NoContent || body is OutgoingContent.ProtocolUpgrade) return body
        return when (body) {
            is OutgoingContent.ContentWrapper -> entering(body.delegate(), end).let { if (it === body.delegate()) body else body.copy(it) }

            // What cannot change.
            is TextContent, is FormDataContent -> body

            // A plugin has replaced the app's body with bytes of its own.
            is OutgoingContent.ByteArrayContent if body !== inner -> body.also { isReplaced = true }

            is Bytes -> body.also { summed(it.bytes()) }

            is OutgoingContent.ByteArrayContent -> SummedBytes(body)

            is OutgoingContent.ReadChannelContent -> WatchedRead(body, end).also { watched(body) }

            is OutgoingContent.WriteChannelContent -> WatchedWrite(body, end).also { watched(body) }

            else -> body
        }
    }

    private fun watched(body: OutgoingContent) {
        if (body === inner) isWatched = true else isReplaced = true
    }

    private fun summed(bytes: ByteArray) {
        val writing = checkNotNull(sum).writing()
        try {
            writing.add(bytes, 0, bytes.size)
            writing.end()
        } catch (changed: BodyChangedException) {
            thrown = changed
            throw changed
        }
    }

    private fun failed(
        failure: Throwable,
        end: (BodyChangedException) -> Unit,
    ) {
        if (thrown == null) thrown = failure
        if (failure is BodyChangedException) end(failure)
    }

    // The next three pass on the same members. Engines go by which of Ktor's abstract classes a body extends, and Kotlin delegates to interfaces alone.

    private inner class SummedBytes(
        private val content: OutgoingContent.ByteArrayContent,
    ) : OutgoingContent.ByteArrayContent() {
        override val contentType: ContentType? get() = content.contentType
        override val contentLength: Long? get() = content.contentLength
        override val status: HttpStatusCode? get() = content.status
        override val headers: Headers get() = content.headers

        override fun <T : Any> getProperty(key: AttributeKey<T>): T? = content.getProperty(key)

        override fun <T : Any> setProperty(
            key: AttributeKey<T>,
            value: T?,
        ): Unit = content.setProperty(key, value)

        override fun trailers(): Headers? = content.trailers()

        override fun bytes(): ByteArray = content.bytes().also(::summed)
    }

    private inner class WatchedRead(
        private val content: OutgoingContent.ReadChannelContent,
        private val end: (BodyChangedException) -> Unit,
    ) : OutgoingContent.ReadChannelContent() {
        override val contentType: ContentType? get() = content.contentType
        override val contentLength: Long? get() = content.contentLength
        override val status: HttpStatusCode? get() = content.status
        override val headers: Headers get() = content.headers

        override fun <T : Any> getProperty(key: AttributeKey<T>): T? = content.getProperty(key)

        override fun <T : Any> setProperty(
            key: AttributeKey<T>,
            value: T?,
        ): Unit = content.setProperty(key, value)

        override fun trailers(): Headers? = content.trailers()

        override fun readFrom(): ByteReadChannel {
            isAskedFor = true
            val channel = content.readFrom()
            return if (sum == null) channel else CountedReads(channel, sum.writing()) { failed(it, end) }
        }

        override fun readFrom(range: LongRange): ByteReadChannel {
            isAskedFor = true
            return content.readFrom(range)
        }
    }

    private inner class WatchedWrite(
        private val content: OutgoingContent.WriteChannelContent,
        private val end: (BodyChangedException) -> Unit,
    ) : OutgoingContent.WriteChannelContent() {
        override val contentType: ContentType? get() = content.contentType
        override val contentLength: Long? get() = content.contentLength
        override val status: HttpStatusCode? get() = content.status
        override val headers: Headers get() = content.headers

        override fun <T : Any> getProperty(key: AttributeKey<T>): T? = content.getProperty(key)

        override fun <T : Any> setProperty(
            key: AttributeKey<T>,
            value: T?,
        ): Unit = content.setProperty(key, value)

        override fun trailers(): Headers? = content.trailers()

        override suspend fun writeTo(channel: ByteWriteChannel) {
            isAskedFor = true
            val counted = sum?.let { CountedWrites(channel, it.writing()) { failure -> failed(failure, end) } }
            try {
                content.writeTo(counted ?: channel)
                counted?.end()
            } catch (failure: Throwable) {
                // A channel that is closed already failed for the engine's reasons, not for the body's.
                if (!channel.isClosedForWrite) failed(failure, end)
                throw failure
            }
        }
    }

    companion object {
        private val NONE = BodyWatch(EmptyContent, isVouchedFor = false)

        fun of(
            content: OutgoingContent,
            isVouchedFor: Boolean,
        ): BodyWatch = if (content === EmptyContent) NONE else BodyWatch(content, isVouchedFor)
    }
}

private tailrec fun OutgoingContent.unwrapped(): OutgoingContent =
    if (this is OutgoingContent.ContentWrapper) delegate().unwrapped() else this
