// Whether Comeback can act on the client that it finds. Where it cannot, requests go as without it, and the listener hears why, once.
package dev.comeback.okhttp.internal

import dev.comeback.Comeback
import dev.comeback.ComebackUnavailableException
import dev.comeback.driver.orNull
import okhttp3.Interceptor
import okhttp3.OkHttp

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

    fun isTooOld(problem: LinkageError) = tell(IllegalStateException("Comeback needs OkHttp $NEEDED, and this is $version", problem))

    /** Without what keeps the client from sending by itself nothing can be promised. */
    fun isGuarded(code: ClientCode): Boolean {
        if (code.isGuarded) return true
        tell(IllegalStateException("Comeback's interceptor works only where OkHttpClient.Builder.comeback(..) has put it"))
        return false
    }

    private fun tell(problem: Throwable) =
        comeback.reportUnavailable(ComebackUnavailableException("okhttp3.OkHttpClient", System.getProperty("os.arch").orEmpty(), problem))

    private companion object {
        const val NEEDED = "5.4 or newer"

        /** That of the client at hand: the constant itself would be the one that this was compiled with. */
        val version: String = orNull { OkHttp::class.java.getField("VERSION").get(null) as String } ?: "before 5.4"
    }
}
