// How an app chooses for a single request, and finds the report on a response.
package dev.comeback.ktor

import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.util.AttributeKey

/** The policy for this request, whatever the client's. [RetryPolicy.OFF] lets it pass. */
public fun HttpRequestBuilder.retryPolicy(policy: RetryPolicy) {
    choose { it.copy(policy = policy) }
}

/**
 * Gives this request an idempotency key if it has none: one for all attempts and redirects. With it the request may be repeated, so the server has to
 * know the key's meaning.
 */
public fun HttpRequestBuilder.makeIdempotencyKey() {
    choose { it.copy(makesKey = true) }
}

/**
 * Vouches that this request's body is the same each time it is asked for, byte for byte, for instance a file's. Without it a channel or a stream is
 * sent once; texts, bytes and forms need no word.
 */
public fun HttpRequestBuilder.replayableBody() {
    choose { it.copy(vouchesForBody = true) }
}

/** What was tried before this response. Null if the first attempt's answer was delivered, or if Comeback did not handle the call. */
public val HttpResponse.retryReport: RetryReport? get() = call.attributes.getOrNull(REPORT)

/** What the app chose for one request. A copy of the request shares it. */
internal data class Choices(
    val policy: RetryPolicy? = null,
    val makesKey: Boolean = false,
    val vouchesForBody: Boolean = false,
)

internal val HttpRequestBuilder.choices: Choices get() = attributes.getOrNull(CHOICES) ?: NONE

private inline fun HttpRequestBuilder.choose(change: (Choices) -> Choices) {
    attributes.put(CHOICES, change(choices))
}

private val NONE = Choices()
private val CHOICES = AttributeKey<Choices>("ComebackChoices")
internal val REPORT = AttributeKey<RetryReport>("ComebackRetryReport")
