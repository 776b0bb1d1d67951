// Which code of the app's runs inside a call of one client. It is the same for all of its calls, so it is found out once.
package dev.comeback.okhttp.internal

import dev.comeback.driver.OwnCode
import dev.comeback.driver.okhttp.isForeign
import okhttp3.Authenticator
import okhttp3.CookieJar
import okhttp3.Dns
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import java.lang.ref.WeakReference

/**
 * @property isGuarded Comeback keeps the client from following up and re-sending by itself
 * @property hasForeignFurtherIn the app has interceptors between the one at which Comeback acts and the client's own layer
 * @property hasForeignNetworkInterceptors the app has network interceptors
 * @property mayNetworkInterceptorsSend they may use another client
 * @property runsAppsCode code of the app's, which may make calls of its own, runs inside an attempt
 */
internal class ClientCode private constructor(
    private val client: WeakReference<OkHttpClient>?,
    private val entry: Interceptor?,
    val isGuarded: Boolean,
    val hasForeignFurtherIn: Boolean,
    val hasForeignNetworkInterceptors: Boolean,
    val mayNetworkInterceptorsSend: Boolean,
    hasForeignHooks: Boolean,
) {
    constructor(client: OkHttpClient, entry: Interceptor) : this(
        WeakReference(client),
        entry,
        isGuarded = client.networkInterceptors.any { it is FollowUpGuard },
        hasForeignFurtherIn = client.interceptors.indexOf(entry).let { at -> at < 0 || client.interceptors.drop(at + 1).any(::isForeign) },
        hasForeignNetworkInterceptors = client.networkInterceptors.any { it !is OwnCode },
        mayNetworkInterceptorsSend = client.networkInterceptors.any(::isForeign),
        hasForeignHooks =
            client.authenticator !== Authenticator.NONE || AttemptDns.resolverOf(client.dns) !== Dns.SYSTEM ||
                client.cookieJar !== CookieJar.NO_COOKIES,
    )

    val runsAppsCode: Boolean = hasForeignHooks || hasForeignNetworkInterceptors || hasForeignFurtherIn

    /**
     * Whether a request on the call of [layer] may have been sent by a client that nobody here hears: an interceptor of the app's may use one. Those of the
     * network come into it once the request has reached them.
     */
    fun mayBeSentElsewhere(
        layer: CallLayer,
        hooks: Hooks,
    ): Boolean = !hooks.onlyThisClientSends && (hasForeignFurtherIn || (mayNetworkInterceptorsSend && layer.lastOut != null))

    /** What the client may send again by itself of a request of which it [mayResend] all, or not. */
    fun resends(
        mayResend: Boolean,
        hooks: Hooks,
    ): Resends =
        when {
            mayResend -> Resends.ANY
            mayNetworkInterceptorsSend && !hooks.onlyThisClientSends -> Resends.NONE
            else -> Resends.REFUSED
        }

    fun isOf(
        client: OkHttpClient,
        entry: Interceptor,
    ): Boolean = this.client?.get() === client && this.entry === entry

    companion object {
        /** Of a call that is not OkHttp's own. */
        val UNKNOWN =
            ClientCode(
                null,
                null,
                isGuarded = true,
                hasForeignFurtherIn = true,
                hasForeignNetworkInterceptors = true,
                mayNetworkInterceptorsSend = true,
                hasForeignHooks = true,
            )
    }
}
