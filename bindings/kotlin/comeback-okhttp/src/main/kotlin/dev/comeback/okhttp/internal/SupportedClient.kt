// Whether Comeback can act on the client that it finds. Where it cannot, requests go as without it, and the listener hears why, once.
package dev.comeback.okhttp.internal

import dev.comeback.Comeback
import okhttp3.Interceptor

/** OkHttp before 5.4 has not all that is needed, and neither has a chain that an app's interceptor made for an older one. */
internal class SupportedClient(
    private val comeback: Comeback,
) {
    /** A kind of chain that has all members. There is hardly ever another. */
    @Volatile
    private var supported: Class<*>? = null

    fun isNewEnough(chain: Interceptor.Chain): Boolean {
        if (chain.javaClass !== supported) {
            try {
                chain.withRetryOnConnectionFailure(chain.retryOnConnectionFailure)
                chain.withConnectionPool(chain.connectionPool)
                chain.withDns(chain.dns)
                chain.call().tag(CallLayer.TYPE)
            } catch (problem: LinkageError) {
                isTooOld(problem)
                return false
            }
            supported = chain.javaClass
        }
        return true
    }

    fun isTooOld(problem: LinkageError) = comeback.reportUnavailable(tooOld(OkHttpVersion.atHand ?: "before 5.4", problem))

    /** Without what keeps the client from sending by itself nothing can be promised. */
    fun isGuarded(code: ClientCode): Boolean {
        if (code.isGuarded) return true
        val problem = IllegalStateException("Comeback's interceptor works only where OkHttpClient.Builder.comeback(..) has put it")
        comeback.reportUnavailable(unavailable(problem))
        return false
    }
}
