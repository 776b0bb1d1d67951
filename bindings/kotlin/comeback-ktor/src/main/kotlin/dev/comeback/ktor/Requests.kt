// How an app chooses for a single request, and finds the report on a response.
package dev.comeback.ktor

import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.util.AttributeKey

/** The policy for this request, whatever the client's. [RetryPolicy.OFF] lets it pass. */
public fun HttpRequestBuilder.retryPolicy(policy: RetryPolicy) {
    attributes.put(POLICY, policy)
}

/**
 * Gives this request an idempotency key if it has none: one for all attempts and redirects. With it the request may be repeated, so the server has to
 * know the key's meaning.
 */
public fun HttpRequestBuilder.makeIdempotencyKey() {
    attributes.put(MAKE_KEY, true)
}

/**
 * Vouches that this request's body is the same each time it is asked for, byte for byte, for instance a file's. Without it a channel or a stream is
 * sent once; texts, bytes and forms need no word.
 */
public fun HttpRequestBuilder.replayableBody() {
    attributes.put(REPLAYABLE, true)
}

/** What was tried before this response. Null if the first attempt's answer was delivered, or if Comeback did not handle the call. */
public val HttpResponse.retryReport: RetryReport? get() = call.attributes.getOrNull(REPORT)

internal val POLICY = AttributeKey<RetryPolicy>("ComebackRetryPolicy")
internal val MAKE_KEY = AttributeKey<Boolean>("ComebackMakeIdempotencyKey")
internal val REPLAYABLE = AttributeKey<Boolean>("ComebackReplayableBody")
internal val REPORT = AttributeKey<RetryReport>("ComebackRetryReport")
