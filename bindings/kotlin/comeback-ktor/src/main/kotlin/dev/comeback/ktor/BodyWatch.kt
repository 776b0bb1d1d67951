// A request body: whether it can be sent again, and whether it was handed out already.
package dev.comeback.ktor

import io.ktor.client.utils.EmptyContent
import io.ktor.http.ContentType
import io.ktor.http.Headers
import io.ktor.http.HttpStatusCode
import io.ktor.http.content.OutgoingContent
import io.ktor.util.AttributeKey
import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.ByteWriteChannel

/** What is known of the one body of a call. */
internal class BodyWatch private constructor(
    content: OutgoingContent,
    isVouchedFor: Boolean,
) {
    private val inner = content.unwrapped()

    val exists: Boolean = inner !is OutgoingContent.NoContent

    /** Judged by its type: bytes are there to be read again, a channel or a writer may be used up. */
    val isReplayable: Boolean = !exists || inner is OutgoingContent.ByteArrayContent || isVouchedFor

    /** Within a wrapper nothing can be known: others may have asked the wrapped content. */
    private val isWatched =
        inner === content && (inner is OutgoingContent.ReadChannelContent || inner is OutgoingContent.WriteChannelContent)

    @Volatile
    private var isTouched = false

    /** What the body itself threw while it was written. */
    @Volatile
    var thrown: Throwable? = null
        private set

    /** Whether it is known that nothing of it was asked for. */
    val isUntouched: Boolean get() = isWatched && !isTouched

    /** As it goes out: of the same kind, so that engines treat it alike. */
    val outgoing: OutgoingContent =
        when {
            !isWatched -> content
            inner is OutgoingContent.ReadChannelContent -> WatchedRead(inner)
            else -> WatchedWrite(inner as OutgoingContent.WriteChannelContent)
        }

    private inner class WatchedRead(
        private val content: OutgoingContent.ReadChannelContent,
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
            isTouched = true
            return content.readFrom()
        }

        override fun readFrom(range: LongRange): ByteReadChannel {
            isTouched = true
            return content.readFrom(range)
        }
    }

    private inner class WatchedWrite(
        private val content: OutgoingContent.WriteChannelContent,
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
            isTouched = true
            try {
                content.writeTo(channel)
            } catch (failure: Throwable) {
                // A channel that is closed already failed for the engine's reasons, not for the body's.
                if (!channel.isClosedForWrite) thrown = failure
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
