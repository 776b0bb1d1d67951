// Judges Ktor's responses and exceptions for retry { } around a Ktor call.
package dev.comeback.ktor

import dev.comeback.coroutines.AttemptResult
import dev.comeback.coroutines.RetryClassifier
import io.ktor.client.plugins.ResponseException
import io.ktor.client.statement.HttpResponse
import io.ktor.http.HttpHeaders

/**
 * For `comeback.retry { }` around a Ktor call, where the plugin stands down. A response that the block returns, or that is thrown because of
 * `expectSuccess`, is judged by its status and its Retry-After.
 */
public object ResponseClassifier : RetryClassifier {
    override fun ofResult(result: Any?): AttemptResult? = (result as? HttpResponse)?.let(::status)

    override fun ofException(exception: Throwable): AttemptResult? = (exception as? ResponseException)?.let { status(it.response) }

    private fun status(response: HttpResponse) =
        AttemptResult.status(
            response.status.value,
            response.headers.getAll(HttpHeaders.RetryAfter).orEmpty(),
            response.headers[HttpHeaders.Date],
        )
}
