// What an app may choose about Comeback on one Ktor client.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.utils.io.KtorDsl

/**
 * The configuration of [ktorPlugin]. Hooks are called in the coroutine of the call, by many calls at once, and should be quick. A hook that throws
 * counts as one that returned null, or did nothing.
 */
@KtorDsl
public class ComebackRetryConfig internal constructor(
    internal val comeback: Comeback,
) {
    /** The policy of all requests that have none of their own. */
    public var policy: RetryPolicy = RetryPolicy.DEFAULT

    /** Chooses the policy for a request; null: [policy]. A request's own ([retryPolicy]) comes before it. */
    public var policyFor: ((request: HttpRequestBuilder) -> RetryPolicy?)? = null

    /**
     * Overrules the class of an attempt's outcome; null: Comeback's own. Exactly one of response and cause is given. It cannot make a request go again
     * that must not be repeated.
     */
    public var classify: ((request: HttpRequestBuilder, response: HttpResponse?, cause: Throwable?) -> OutcomeClass?)? = null

    /** A name for a request in [dev.comeback.RetryEvent]s, which hold nothing of the request itself. */
    public var label: ((request: HttpRequestBuilder) -> String?)? = null

    /**
     * How many requests one call may send in this client, as `install(HttpSend) { maxSendCount = … }` says. A policy's attempts must be fewer, because
     * redirects and authentication count too.
     */
    public var maxSendCount: Int = 20

    /**
     * Set this to true if the plugins and interceptors of this client send requests through no client but this one, or only through clients that have
     * Comeback too ([RetryPolicy.OFF] is enough). Those that sign or log are of this kind.
     *
     * A plugin may send a request through another client first, and only then pass it on. Comeback cannot see that. So as long as this is false and the
     * client has plugins that are not Ktor's, no failure counts as "never sent", and a POST without an idempotency key goes once. The same holds for what
     * is added after Comeback by `plugin(HttpSend).intercept { }` or to `sendPipeline`, and for the interceptors of the OkHttp engine.
     */
    public var onlyThisClientSends: Boolean = false

    internal var modifyRequest: ComebackModifyRequestContext.(HttpRequestBuilder) -> Unit = {}

    /**
     * Changes a request before it goes again; the first attempt goes as it is. Changes of method, body and idempotency key are undone, because they decided
     * whether the request may go again.
     */
    public fun modifyRequest(block: ComebackModifyRequestContext.(request: HttpRequestBuilder) -> Unit) {
        modifyRequest = block
    }
}

/**
 * What led to the next attempt. Exactly one of [response] and [cause] is set, or neither after an abandoned attempt.
 *
 * @property request the original request
 * @property response what the attempt before came back with; its body is closed
 * @property cause what the attempt before failed with
 * @property attempt the number of the attempt to come, from 2
 */
public class ComebackModifyRequestContext internal constructor(
    public val request: HttpRequestBuilder,
    public val response: HttpResponse?,
    public val cause: Throwable?,
    public val attempt: Int,
) {
    /** [attempt] as Ktor counts: from 1. */
    public val retryCount: Int get() = attempt - 1
}
