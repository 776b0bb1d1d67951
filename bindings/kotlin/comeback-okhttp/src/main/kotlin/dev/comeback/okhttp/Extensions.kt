// How an app puts Comeback on a client, chooses for a single request, and finds the report on a response.
@file:JvmName("ComebackRequests")

package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import okhttp3.Call
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response

/**
 * Adds Comeback to this client. Interceptors added before it run once per call, those added after it once per attempt: signing, authentication and
 * logging belong after it.
 */
@JvmOverloads
public fun OkHttpClient.Builder.comeback(
    comeback: Comeback,
    policy: RetryPolicy = RetryPolicy.DEFAULT,
    configure: ComebackOkHttp.() -> Unit = {},
): OkHttpClient.Builder =
    addInterceptor(ComebackInterceptor(comeback, policy, ComebackOkHttp().apply(configure)))
        .guarded()

/**
 * Calls around those of [client] that retry as [policy] says and hold no thread while they wait, for instance for Retrofit:
 * `Retrofit.Builder().callFactory(comeback.callFactory(client))`. See [ComebackCallFactory].
 */
@JvmOverloads
public fun Comeback.callFactory(
    client: OkHttpClient,
    policy: RetryPolicy = RetryPolicy.DEFAULT,
    configure: ComebackOkHttp.() -> Unit = {},
): Call.Factory = ComebackCallFactory(this, client, policy, ComebackOkHttp().apply(configure))

/** The policy for this request, whatever the client's. [RetryPolicy.OFF] lets it pass. */
public fun Request.Builder.retryPolicy(policy: RetryPolicy): Request.Builder = tag(RetryPolicy::class.java, policy)

/**
 * Gives this request an idempotency key if it has none: one for all attempts and redirects. With it the request may be repeated, so the server has to
 * know the key's meaning.
 */
public fun Request.Builder.makeIdempotencyKey(): Request.Builder = tag(MakeIdempotencyKey::class.java, MakeIdempotencyKey)

/** What was tried before this response. Null if the first attempt's answer was delivered, or if Comeback did not handle the call. */
public val Response.retryReport: RetryReport?
    get() = request.tag(RetryReport::class.java)
