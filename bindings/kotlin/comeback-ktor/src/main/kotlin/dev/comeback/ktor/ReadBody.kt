// Reads a response's body within its attempt, as far as the policy says: an answer that breaks after its head is a failed attempt then.
@file:OptIn(InternalAPI::class)

package dev.comeback.ktor

import io.ktor.client.call.HttpClientCall
import io.ktor.client.call.replaceResponse
import io.ktor.client.plugins.isSaved
import io.ktor.client.statement.HttpResponse
import io.ktor.http.ContentType
import io.ktor.http.HttpHeaders
import io.ktor.http.HttpMethod
import io.ktor.http.HttpStatusCode
import io.ktor.http.contentLength
import io.ktor.http.contentType
import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.InternalAPI
import io.ktor.utils.io.rethrowCloseCauseIfNeeded
import kotlinx.io.Buffer
import kotlinx.io.EOFException
import kotlinx.io.Source
import kotlinx.io.readByteArray

/** Whether its body can be read before it is handed on: an event stream may never end. */
internal val HttpResponse.hasReadableBody: Boolean
    get() = status != HttpStatusCode.SwitchingProtocols && contentType()?.match(ContentType.Text.EventStream) != true

/** With the first [most] bytes of its body read; what is beyond them follows unread. Ktor itself has read bodies of requests that are not streamed. */
internal suspend fun HttpClientCall.withBodyRead(most: Long): HttpClientCall {
    val response = response
    if (response.isSaved || !response.hasReadableBody) return this
    val content = response.rawContent
    val read = Buffer()
    while (read.size < most && content.awaitContent()) content.readBuffer.readAtMostTo(read, most - read.size)
    content.rethrowCloseCauseIfNeeded()
    // One more read: a body of exactly that length has ended.
    if (read.size == most && content.awaitContent()) {
        val begun = BegunChannel(read, content)
        return replaceResponse { begun }
    }
    content.rethrowCloseCauseIfNeeded()
    // Not every engine says that a body was cut off.
    if (response.promisedMoreThan(read.size)) throw EOFException("the body ended early")
    val whole = read.readByteArray()
    return replaceResponse { ByteReadChannel(whole) }
}

private fun HttpResponse.promisedMoreThan(length: Long): Boolean {
    if (call.request.method == HttpMethod.Head || HttpHeaders.ContentEncoding in headers) return false
    return contentLength().let { it != null && it > length }
}

/** [begun], and then the rest. */
private class BegunChannel(
    private val begun: Buffer,
    private val rest: ByteReadChannel,
) : ByteReadChannel {
    override val closedCause: Throwable? get() = rest.closedCause
    override val isClosedForRead: Boolean get() = closedCause != null || (begun.exhausted() && rest.isClosedForRead)
    override val readBuffer: Source get() = begun

    override suspend fun awaitContent(min: Int): Boolean {
        while (begun.size < min && rest.awaitContent()) rest.readBuffer.readAtMostTo(begun, AT_ONCE)
        return begun.size >= min
    }

    override fun cancel(cause: Throwable?): Unit = rest.cancel(cause)

    private companion object {
        const val AT_ONCE = 64L * 1024
    }
}
