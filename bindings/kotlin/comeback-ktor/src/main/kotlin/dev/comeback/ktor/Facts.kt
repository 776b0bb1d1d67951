// What the core is told of a request.
package dev.comeback.ktor

import dev.comeback.RequestFacts
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.http.HttpHeaders

internal fun requestFacts(
    request: HttpRequestBuilder,
    keyHeader: String,
    body: BodyWatch,
) = RequestFacts(
    method = request.method.value,
    hasKey = !request.headers[keyHeader].isNullOrBlank(),
    conditional = CONDITIONS.any { it in request.headers },
    hasBody = body.exists,
    bodyReplayable = body.isReplayable,
    onlyIfCached =
        request.headers
            .getAll(HttpHeaders.CacheControl)
            .orEmpty()
            .any { ONLY_IF_CACHED in it.lowercase() },
)

private val CONDITIONS = listOf(HttpHeaders.IfMatch, HttpHeaders.IfNoneMatch, HttpHeaders.IfUnmodifiedSince)
private const val ONLY_IF_CACHED = "only-if-cached"
