// Stands between the network and OkHttp's own reading of Retry-After, which crashes on large numbers and re-sends at a 0.
package dev.comeback.ktor

import dev.comeback.OuterAttempt
import okhttp3.Interceptor
import okhttp3.Response

/** As its namesake in comeback-okhttp, on which Ktor's users do not depend, for the requests that the plugin looks after. */
internal object RetryAfterGuard : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val response = chain.proceed(chain.request())
        if (response.code != UNAVAILABLE && response.code != CLIENT_TIMEOUT) return response
        val above = chain.request().tag(OuterAttempt::class.java) ?: return response
        // Of several lines OkHttp reads the last.
        val read = response.header(RETRY_AFTER)?.takeIf(::isNumber) ?: return response
        return when {
            read.toIntOrNull() == null -> response.newBuilder().header(RETRY_AFTER, Int.MAX_VALUE.toString()).build()
            response.code == UNAVAILABLE && above.clientResendsOff && isZero(read) -> withoutZeros(response)
            else -> response
        }
    }

    private fun isNumber(value: String) = value.isNotEmpty() && value.all { it in '0'..'9' }

    private fun isZero(value: String) = isNumber(value) && value.all { it == '0' }

    private fun withoutZeros(response: Response): Response {
        val builder = response.newBuilder().removeHeader(RETRY_AFTER)
        response.headers(RETRY_AFTER).filterNot(::isZero).forEach { builder.addHeader(RETRY_AFTER, it) }
        return builder.build()
    }

    private const val RETRY_AFTER = "Retry-After"
    private const val UNAVAILABLE = 503
    private const val CLIENT_TIMEOUT = 408
}
