// Retrofit's HttpException in retry { }: it is an answer of the server.
package dev.comeback.coroutines

import retrofit2.HttpException

/**
 * Judges Retrofit's [HttpException] by its response, as Comeback's OkHttp adapters would: by status and `Retry-After`. Everything else counts as it does
 * by [RetryClassifier.Default]. For suspending methods that return the body; it needs Retrofit on the class path.
 *
 * ```
 * val orders = comeback.retry(RetryPolicy.READ, RetrofitClassifier) { service.orders() }
 * ```
 *
 * Where the service's calls go through Comeback's call factory or interceptor already, that one needs no block around it.
 */
public object RetrofitClassifier : RetryClassifier {
    override fun ofException(exception: Throwable): AttemptResult? {
        if (exception !is HttpException) return null
        val headers = exception.response()?.headers()
        return AttemptResult.status(exception.code(), headers?.values("Retry-After").orEmpty(), headers?.get("Date"))
    }
}
