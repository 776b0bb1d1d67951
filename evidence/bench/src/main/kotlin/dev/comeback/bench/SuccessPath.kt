// A call through OkHttp that succeeds at once: OkHttp alone (bare), with an interceptor that only proceeds, with ours, and with what people use
// instead: the usual hand-written interceptor, Failsafe and resilience4j, each around `proceed`. Success.kt says how to read the table.
package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.okhttp.comeback
import dev.failsafe.Failsafe
import dev.failsafe.function.CheckedSupplier
import io.github.resilience4j.core.IntervalFunction
import io.github.resilience4j.retry.Retry
import io.github.resilience4j.retry.RetryConfig
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import org.openjdk.jmh.annotations.Benchmark
import org.openjdk.jmh.annotations.Param
import org.openjdk.jmh.annotations.Scope
import org.openjdk.jmh.annotations.Setup
import org.openjdk.jmh.annotations.State
import java.io.IOException
import java.time.Duration
import kotlin.random.Random

@State(Scope.Thread)
open class SuccessPath {
    /** No socket hides the difference: a fake end of the chain answers. LoopbackSuccess.kt has the same clients over a real one. */
    @Param("bare", "proceeds", "DEFAULT", "READ", "PAYMENT", "hand-written", "Failsafe", "resilience4j")
    lateinit var client: String

    private lateinit var http: OkHttpClient
    private lateinit var get: Request
    private lateinit var post: Request

    @Setup
    fun build() {
        // A name, as apps have it: whether numbers are this machine's address takes longer to see, and nothing is looked up here.
        val url = "http://example.org/"
        get = getTo(url)
        post = postTo(url)
        val answers = listOf(get, post).associateWith(::answer)
        http = clientWith(client).addInterceptor(Interceptor { answers.getValue(it.call().request()) }).build()
    }

    /** Closed, as an app closes it: its connection serves the next call. */
    @Benchmark
    fun get(): Int = http.newCall(get).execute().use { it.code }

    @Benchmark
    fun post(): Int = http.newCall(post).execute().use { it.code }
}

internal fun getTo(url: String): Request = Request.Builder().url(url).build()

internal fun postTo(url: String): Request =
    Request
        .Builder()
        .url(url)
        .post("order".toRequestBody())
        .build()

/** A client with what the row of that name is about. */
internal fun clientWith(row: String): OkHttpClient.Builder {
    val builder = OkHttpClient.Builder()
    return when (row) {
        "bare" -> builder
        "proceeds" -> builder.addInterceptor { chain -> chain.proceed(chain.request()) }
        "DEFAULT" -> builder.comeback(Comeback(), RetryPolicy.DEFAULT)
        "READ" -> builder.comeback(Comeback(), RetryPolicy.READ)
        "PAYMENT" -> builder.comeback(Comeback(), RetryPolicy.PAYMENT)
        "hand-written" -> builder.addInterceptor(::handWritten)
        "Failsafe" -> builder.addInterceptor(failsafe())
        "resilience4j" -> builder.addInterceptor(resilience4j())
        else -> error("there is no row $row")
    }
}

private fun handWritten(chain: Interceptor.Chain): Response {
    for (retry in 0 until RETRIES) {
        try {
            val response = chain.proceed(chain.request())
            if (response.code < 500) return response
            response.close()
        } catch (_: IOException) {
            // Once more.
        }
        Thread.sleep(Random.nextLong(minOf(1_000L shl retry, 8_000L) + 1))
    }
    return chain.proceed(chain.request())
}

private fun failsafe(): Interceptor {
    val policy =
        dev.failsafe.RetryPolicy
            .builder<Response>()
            .handle(IOException::class.java)
            .handleResultIf { it.code >= 500 }
            .withBackoff(Duration.ofSeconds(1), Duration.ofSeconds(8))
            .withJitter(0.5)
            .withMaxRetries(RETRIES)
            .build()
    val failsafe = Failsafe.with(policy)
    return Interceptor { chain -> failsafe.get(CheckedSupplier { chain.proceed(chain.request()) }) }
}

private fun resilience4j(): Interceptor {
    val config =
        RetryConfig
            .custom<Response>()
            .maxAttempts(RETRIES + 1)
            .retryExceptions(IOException::class.java)
            .retryOnResult { it.code >= 500 }
            .intervalFunction(IntervalFunction.ofExponentialRandomBackoff(Duration.ofSeconds(1), 2.0, 0.5, Duration.ofSeconds(8)))
            .build()
    val retry = Retry.of("bench", config)
    return Interceptor { chain -> retry.executeCallable { chain.proceed(chain.request()) } }
}

private const val RETRIES = 3
