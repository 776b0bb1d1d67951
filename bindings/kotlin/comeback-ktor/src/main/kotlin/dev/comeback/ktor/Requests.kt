// How an app chooses for a single request, and finds the report on a response.
package dev.comeback.ktor

import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.util.AttributeKey

/** The policy for this request, whatever the client's. [RetryPolicy.OFF] lets it pass. */
public fun HttpRequestBuilder.retryPolicy(policy: RetryPolicy) {
    choose(POLICY, policy)
}

/**
 * Gives this request an idempotency key if it has none: one for all attempts and redirects. With a key the request may be repeated, so the server must
 * support idempotency keys.
 */
public fun HttpRequestBuilder.makeIdempotencyKey() {
    choose(MAKE_KEY, Unit)
}

/**
 * Promises that this request's body is the same each time, byte for byte, for instance a file's. Without this a channel or a stream is sent once. Texts, bytes
 * and forms do not need it.
 */
public fun HttpRequestBuilder.replayableBody() {
    choose(REPLAYABLE, Unit)
}

/** What was tried before this response. Null if the first attempt's answer was delivered, or if Comeback did not handle the call. */
public val HttpResponse.retryReport: RetryReport? get() = (call.attributes.getOrNull(RequestAttribute.KEY) as? Attempt)?.report

/** What the app chose for one request. */
internal class Choices(
    val policy: RetryPolicy?,
    val makesKey: Boolean,
    val vouchesForBody: Boolean,
)

/** Most requests choose nothing, and are asked once. */
internal val HttpRequestBuilder.choices: Choices
    get() = if (CHOSEN in attributes) Choices(attributes.getOrNull(POLICY), MAKE_KEY in attributes, REPLAYABLE in attributes) else NONE

/** Each choice is an attribute of its own: a request that takes over another's attributes keeps its own choices, unless the other made the same. */
private fun <T : Any> HttpRequestBuilder.choose(
    choice: AttributeKey<T>,
    value: T,
) {
    attributes.put(choice, value)
    attributes.put(CHOSEN, Unit)
}

private val NONE = Choices(policy = null, makesKey = false, vouchesForBody = false)
private val CHOSEN = AttributeKey<Unit>("ComebackChosen")
private val POLICY = AttributeKey<RetryPolicy>("ComebackRetryPolicy")
private val MAKE_KEY = AttributeKey<Unit>("ComebackMakeIdempotencyKey")
private val REPLAYABLE = AttributeKey<Unit>("ComebackReplayableBody")
