// What the core is told of a request.
package dev.comeback.ktor

import dev.comeback.driver.RequestFacts
import dev.comeback.driver.RequestHead
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.http.content.OutgoingContent
import io.ktor.utils.io.InternalAPI

/** Its lines as an engine writes them: the body may have some of its own. */
@OptIn(InternalAPI::class)
internal fun HttpRequestBuilder.head(keyHeader: String): RequestHead {
    val ofBody = (body as? OutgoingContent)?.headers
    return RequestHead.read(method.value, keyHeader) { name ->
        val lines = headers.getAll(name)
        val others = ofBody?.getAll(name)
        if (lines == null || others == null) lines ?: others else lines + others
    }
}

internal fun requestFacts(
    request: HttpRequestBuilder,
    keyHeader: String,
    body: BodyWatch,
    keyIsMade: Boolean,
) = RequestFacts(request.head(keyHeader), body.exists, body.isReplayable, keyIsMade)
