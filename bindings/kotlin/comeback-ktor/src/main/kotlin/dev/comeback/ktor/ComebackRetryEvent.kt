// What the client's monitor hears, in the manner of Ktor's own HttpRequestRetryEvent.
package dev.comeback.ktor

import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.events.EventDefinition

/** Raised when a request is going to be sent again, before the wait. The [dev.comeback.RetryListener] hears more. */
public val ComebackRetryEvent: EventDefinition<ComebackRetryEventData> = EventDefinition()

/**
 * Exactly one of [response] and [cause] is set.
 *
 * @property request as it was sent
 * @property retryCount how often the request has been sent so far
 * @property response what it came back with; its body is closed
 * @property cause what it failed with
 */
public class ComebackRetryEventData internal constructor(
    public val request: HttpRequestBuilder,
    public val retryCount: Int,
    public val response: HttpResponse?,
    public val cause: Throwable?,
)
