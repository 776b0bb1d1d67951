// What Comeback is compared with.
package dev.comeback.demo

import okhttp3.Interceptor
import okhttp3.Response
import java.io.IOException
import java.util.concurrent.ThreadLocalRandom

/**
 * The retry interceptor an app usually writes for itself: four sends, full jitter from 1 s up to 8 s, `Thread.sleep`. It
 * retries what fails, has no idempotency key and does not know when the network is back.
 */
internal class HandWrittenInterceptor : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        for (failures in 0 until MAX_SENDS - 1) {
            try {
                val response = chain.proceed(chain.request())
                if (response.code < 500) return response
                response.close()
            } catch (_: IOException) {
                // Again, after the wait.
            }
            val window = minOf(CAP_MILLIS, BASE_MILLIS shl failures)
            Thread.sleep(ThreadLocalRandom.current().nextLong(window + 1))
        }
        return chain.proceed(chain.request())
    }

    companion object {
        const val MAX_SENDS = 4
        const val BASE_MILLIS = 1000L
        const val CAP_MILLIS = 8000L
    }
}
