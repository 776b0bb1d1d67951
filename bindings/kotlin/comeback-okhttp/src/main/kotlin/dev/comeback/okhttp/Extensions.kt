// How an app puts Comeback on a client, chooses for a single request, and finds the report on a response.
@file:JvmName("ComebackRequests")

package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.driver.orNull
import dev.comeback.okhttp.internal.AttemptDns
import dev.comeback.okhttp.internal.AttemptNumber
import dev.comeback.okhttp.internal.BlockNoting
import dev.comeback.okhttp.internal.MakeIdempotencyKey
import dev.comeback.okhttp.internal.guarded
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response

/**
 * Adds Comeback to this client. Interceptors added before it run once per call, those added after it once per attempt: signing, authentication and
 * logging belong after it. Add network interceptors before it; otherwise a repeated body cannot be compared with its first writing. Set an
 * [okhttp3.EventListener] before it too; otherwise a call that is enqueued inside `retry { }` does not know of the block. Such a call retries by itself, and if its
 * request must not be repeated, no block that is in progress at that time is repeated, because it may be that one's.
 *
 * An interceptor after it may send requests through another client. A client with Comeback reports them here, whatever its policy, and the call is repeated
 * only if they may be repeated too. What a client without Comeback sends is not seen. So where the app has interceptors after it, or a request has come as far as
 * the app's network interceptors, no failure counts as never sent, and a POST without an idempotency key goes once, unless [ComebackOkHttp.onlyThisClientSends]
 * is true. What an app's own `Dns`, `ProxySelector`, `Authenticator` or `SocketFactory` sends by such a client keeps nothing from
 * being repeated.
 */
@JvmOverloads
public fun OkHttpClient.Builder.comeback(
    comeback: Comeback,
    policy: RetryPolicy = RetryPolicy.DEFAULT,
    configure: ComebackOkHttp.() -> Unit = {},
): OkHttpClient.Builder {
    if (interceptors().any { it is ComebackInterceptor }) comeback.reportSetup(TWICE)
    val interceptor = ComebackInterceptor(comeback, policy, ComebackOkHttp().apply(configure))
    // The one way to learn what was set. Where the builder is not complete enough for it, calls inside blocks are noted where they run.
    val soFar = orNull { build() }
    if (soFar != null) {
        val listeners = soFar.eventListenerFactory
        if (listeners !is BlockNoting) eventListenerFactory(BlockNoting(interceptor.setup, listeners))
        // What is set later is wrapped for each attempt.
        dns(AttemptDns.of(soFar.dns))
    }
    return addInterceptor(interceptor).guarded()
}

private const val TWICE =
    "comeback(…) was called twice on one OkHttpClient.Builder, and only the first one acts: remove one. " +
        "For other policies there are policyFor and Request.Builder.retryPolicy"

/**
 * Calls around those of [client] that retry as [policy] says and hold no thread while they wait, for instance for Retrofit:
 * `Retrofit.Builder().callFactory(comeback.callFactory(client))`. See [ComebackCallFactory].
 */
@JvmOverloads
public fun Comeback.callFactory(
    client: OkHttpClient,
    policy: RetryPolicy = RetryPolicy.DEFAULT,
    configure: ComebackOkHttp.() -> Unit = {},
): ComebackCallFactory = ComebackCallFactory(this, client, policy, ComebackOkHttp().apply(configure))

/** The policy for this request, whatever the client's. [RetryPolicy.OFF] lets it pass. */
public fun Request.Builder.retryPolicy(policy: RetryPolicy): Request.Builder = tag(RetryPolicy::class.java, policy)

/**
 * Gives this request an idempotency key if it has none: one for all attempts and redirects. With a key the request may be repeated, so the server must
 * support idempotency keys. A request that is built from that of a response has a key of its own, unless the response was an error and nothing was changed.
 */
public fun Request.Builder.makeIdempotencyKey(): Request.Builder = tag(MakeIdempotencyKey::class.java, MakeIdempotencyKey)

/**
 * Which attempt of a [ComebackCallFactory]'s call this request belongs to, from 1; for [okhttp3.EventListener]s and interceptors, to which each attempt
 * is a call of its own. 1 for any other request.
 */
public val Request.attemptNumber: Int
    get() = tag(AttemptNumber::class.java)?.number ?: 1

/** What was tried before this response. Null if the first attempt's answer was delivered, or if Comeback did not handle the call. */
public val Response.retryReport: RetryReport?
    get() = request.tag(RetryReport::class.java)
