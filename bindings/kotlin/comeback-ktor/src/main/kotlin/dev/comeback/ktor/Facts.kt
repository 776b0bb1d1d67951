// What the core is told of a request.
package dev.comeback.ktor

import dev.comeback.RequestFacts
import dev.comeback.RequestHead
import io.ktor.client.request.HttpRequestBuilder

internal fun requestFacts(
    request: HttpRequestBuilder,
    keyHeader: String,
    body: BodyWatch,
) = RequestFacts(
    head = RequestHead.read(request.method.value, keyHeader, request.headers::getAll),
    hasBody = body.exists,
    bodyReplayable = body.isReplayable,
)
