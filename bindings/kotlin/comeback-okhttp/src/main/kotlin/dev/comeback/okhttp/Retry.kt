// What a Retrofit service method says about its retries.
package dev.comeback.okhttp

/**
 * The policy of a Retrofit service method, for [ComebackInterceptor] and [ComebackCallFactory]: its name, and values that replace the policy's own.
 *
 * ```
 * @Retry("payment")
 * @POST("orders")
 * suspend fun order(@Header("Idempotency-Key") key: String, @Body order: Order): Receipt
 *
 * @Retry("read", maxAttempts = 6, maxElapsedMillis = 45_000)
 * @GET("timetable")
 * fun timetable(): Call<Timetable>
 * ```
 *
 * A POST goes again only with an idempotency key: as a header, or made by the policy. A name that is not known, or a value that is not valid, fails each call of the method before anything is sent, with an [java.io.IOException] that
 * says which method and what is known.
 *
 * @property policy `default`, `read`, `payment`, `batch`, `off`, or a name in [ComebackOkHttp.policies]
 * @property maxAttempts see [dev.comeback.RetryPolicy.Builder.maxAttempts]; unless given, the policy's own, as for all that follow
 * @property maxElapsedMillis see [dev.comeback.RetryPolicy.Builder.maxElapsed]
 * @property attemptTimeoutMillis see [dev.comeback.RetryPolicy.Builder.attemptTimeout]
 * @property baseMillis see [dev.comeback.RetryPolicy.Builder.base]
 * @property capMillis see [dev.comeback.RetryPolicy.Builder.cap]
 */
@MustBeDocumented
@Target(AnnotationTarget.FUNCTION)
@Retention(AnnotationRetention.RUNTIME)
public annotation class Retry(
    val policy: String = "default",
    val maxAttempts: Int = Int.MIN_VALUE,
    val maxElapsedMillis: Long = Long.MIN_VALUE,
    val attemptTimeoutMillis: Long = Long.MIN_VALUE,
    val baseMillis: Long = Long.MIN_VALUE,
    val capMillis: Long = Long.MIN_VALUE,
)
