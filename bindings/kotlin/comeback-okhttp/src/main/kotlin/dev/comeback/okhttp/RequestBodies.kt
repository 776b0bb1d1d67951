// Request bodies that know whether they were handed out, and keep the client from sending them again by itself.
package dev.comeback.okhttp

import okhttp3.MediaType
import okhttp3.Request
import okhttp3.RequestBody
import okio.BufferedSink

/**
 * Stands in for a body that can be written only once, or whose request the client must not send again by itself. Other bodies are never wrapped:
 * interceptors look at their types.
 */
internal class WatchedBody(
    val body: RequestBody,
    private val witness: AttemptWitness,
    private val clientMayResend: Boolean,
) : RequestBody() {
    /** Whether the body's bytes, or a part of them, were asked for. Then they can be asked for again only if they are replayable. */
    @Volatile
    var isTouched: Boolean = false
        private set

    override fun contentType(): MediaType? = body.contentType()

    override fun contentLength(): Long = body.contentLength()

    override fun isDuplex(): Boolean = body.isDuplex()

    /** The client asks this before each of its own re-sends. Only after a 503 or 421 is the answer a pretext: redirects and authentication go on. */
    override fun isOneShot(): Boolean = body.isOneShot() || (!clientMayResend && witness.mightResend)

    override fun writeTo(sink: BufferedSink) {
        isTouched = true
        body.writeTo(sink)
    }
}

/** Whether the body can be written again, byte for byte. */
internal fun RequestBody.isReplayable(): Boolean = !isOneShot() && !isDuplex()

/** [request] with a [WatchedBody] where one is needed. */
internal fun watched(
    request: Request,
    witness: AttemptWitness,
    clientMayResend: Boolean,
): Request {
    val body = request.body
    if (body == null || (clientMayResend && body.isReplayable())) return request
    return request.newBuilder().method(request.method, WatchedBody(body, witness, clientMayResend)).build()
}

internal fun takesBody(method: String): Boolean = method != "GET" && method != "HEAD"
