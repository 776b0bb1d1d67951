// Reads a response's body within the attempt, so that one which breaks off is a failed attempt too.
package dev.comeback.okhttp.internal

import dev.comeback.driver.DriverFacts
import okhttp3.Request
import okhttp3.Response
import java.io.IOException

/**
 * Has the first bytes of [response]'s body read, as many as the policy says: they stay in its buffer, and the body is the same. Of a longer one the rest
 * is read by whoever asks for it. A duplex request may wait for its response before it ends, and an event stream has no end.
 */
@Throws(IOException::class)
internal fun readBody(
    response: Response,
    request: Request,
    facts: DriverFacts,
) {
    val most = facts.readBodyBytes ?: return
    if (most <= 0 || response.code >= FIRST_ERROR || response.code == SWITCHING_PROTOCOLS || request.body?.isDuplex() == true) return
    if (response.body.contentType()?.let { it.type == "text" && it.subtype == "event-stream" } == true) return
    // One more than that: a body of just that length has ended.
    response.body.source().request(most + 1)
}

private const val SWITCHING_PROTOCOLS = 101
