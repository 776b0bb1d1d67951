// Inside Ktor's OkHttp engine: hands the policy's limits to OkHttp, and makes of the header that brought them the tag by which layers further in
// stand down.
package dev.comeback.ktor

import dev.comeback.OuterAttempt
import io.ktor.client.HttpClient
import io.ktor.client.engine.okhttp.OkHttpConfig
import kotlinx.coroutines.job
import okhttp3.Dns
import okhttp3.Interceptor
import okhttp3.Response
import java.util.Collections
import java.util.WeakHashMap
import java.util.concurrent.TimeUnit.MILLISECONDS

/** Touched only where the engine is on the class path. */
internal object OkHttpLayer {
    private val prepared: MutableMap<OkHttpConfig, Boolean> = Collections.synchronizedMap(WeakHashMap())

    /**
     * Whether requests of [client] may carry the header. It is taken away by an interceptor of ours, which is put into the engine's configuration
     * here. An engine that another client uses already may have built OkHttp clients without it: there no header is sent.
     */
    fun prepare(
        client: HttpClient,
        path: Long,
    ): Boolean {
        val config = client.engine.config as? OkHttpConfig ?: return false
        val isShared =
            client.engine.coroutineContext.job.children
                .count() > 1
        return prepared.getOrPut(config) {
            if (!isShared) {
                config.config {
                    // Before all of the app's own: what they sign or log is the request as it would be without us.
                    interceptors().add(0, Layer(FreshPools(path)))
                    addNetworkInterceptor(RetryAfterGuard)
                }
            }
            !isShared
        }
    }

    /** Whether the engine looks names up past the platform's cache. */
    fun hasOwnDns(client: HttpClient): Boolean {
        val config = client.engine.config as? OkHttpConfig ?: return false
        return (config.dns ?: config.preconfigured?.dns ?: Dns.SYSTEM) !== Dns.SYSTEM
    }

    private class Layer(
        private val pools: FreshPools,
    ) : Interceptor {
        override fun intercept(chain: Interceptor.Chain): Response {
            val said = chain.request().header(OuterAttempt.header) ?: return chain.proceed(chain.request())
            val above = OuterAttempt.byHandle(said)
            val request =
                chain
                    .request()
                    .newBuilder()
                    .removeHeader(OuterAttempt.header)
                    .tag(OuterAttempt::class.java, above)
                    .build()
            // The attempt is over: what comes of this concerns nobody.
            if (above == null) return chain.proceed(request)
            val limited = chain.limitedTo(above)
            return (above.path?.let { pools.on(it, limited) } ?: limited).proceed(request)
        }

        private fun Interceptor.Chain.limitedTo(above: OuterAttempt): Interceptor.Chain {
            var chain = this
            shortened(connectTimeoutMillis(), above.connectNanos)?.let { chain = chain.withConnectTimeout(it, MILLISECONDS) }
            shortened(readTimeoutMillis(), above.inactivityNanos)?.let { chain = chain.withReadTimeout(it, MILLISECONDS) }
            shortened(writeTimeoutMillis(), above.inactivityNanos)?.let { chain = chain.withWriteTimeout(it, MILLISECONDS) }
            if (!above.clientResendsOff) return chain
            return try {
                chain.withRetryOnConnectionFailure(false)
            } catch (_: LinkageError) {
                // OkHttp has it from 5.4 on.
                chain
            }
        }

        /** In whole milliseconds, if it is shorter than [millis]; 0 is OkHttp's word for no limit. */
        private fun shortened(
            millis: Int,
            limitNanos: Long?,
        ): Int? {
            if (limitNanos == null) return null
            val limit = roundedUpToMillis(limitNanos).coerceIn(1, Int.MAX_VALUE.toLong()).toInt()
            return limit.takeIf { millis == 0 || it < millis }
        }
    }
}
