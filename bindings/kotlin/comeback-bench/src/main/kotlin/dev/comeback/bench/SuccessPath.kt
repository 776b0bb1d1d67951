// What a call costs that succeeds at once, in OkHttp alone (bare), with an interceptor that only proceeds, with ours, and with what people use instead:
// the usual hand-written interceptor, Failsafe and resilience4j, each around `proceed`. A fake end of the chain answers, so that no socket hides the
// difference.
//
// How to read the table: each call is timed by itself; ns is the median of an iteration, of all iterations the lowest, because other programs on the
// machine only ever add. It includes reading the clock, some 25 ns in every row. Bytes are steady. "more" is the difference to the interceptor that
// only proceeds. Goals: for a GET at most 60 ns and 128 bytes more, for a POST without key 1 µs and 1 KiB.
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
import org.openjdk.jmh.annotations.Mode
import org.openjdk.jmh.annotations.Param
import org.openjdk.jmh.annotations.Scope
import org.openjdk.jmh.annotations.Setup
import org.openjdk.jmh.annotations.State
import org.openjdk.jmh.profile.GCProfiler
import org.openjdk.jmh.results.RunResult
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.OptionsBuilder
import org.openjdk.jmh.runner.options.TimeValue
import org.openjdk.jmh.runner.options.VerboseMode
import java.io.IOException
import java.time.Duration
import java.util.concurrent.TimeUnit
import kotlin.random.Random

@State(Scope.Thread)
open class SuccessPath {
    @Param("bare", "proceeds", "DEFAULT", "READ", "PAYMENT", "hand-written", "Failsafe", "resilience4j")
    lateinit var client: String

    private lateinit var http: OkHttpClient
    private val get = Request.Builder().url("http://localhost/").build()
    private val post =
        Request
            .Builder()
            .url("http://localhost/")
            .post("order".toRequestBody())
            .build()

    @Setup
    fun build() {
        val builder = OkHttpClient.Builder()
        when (client) {
            "bare" -> Unit
            "proceeds" -> builder.addInterceptor { chain -> chain.proceed(chain.request()) }
            "DEFAULT" -> builder.comeback(Comeback(), RetryPolicy.DEFAULT)
            "READ" -> builder.comeback(Comeback(), RetryPolicy.READ)
            "PAYMENT" -> builder.comeback(Comeback(), RetryPolicy.PAYMENT)
            "hand-written" -> builder.addInterceptor(::handWritten)
            "Failsafe" -> builder.addInterceptor(failsafe())
            "resilience4j" -> builder.addInterceptor(resilience4j())
        }
        val answers = listOf(get, post).associateWith(::answer)
        http = builder.addInterceptor(Interceptor { answers.getValue(it.call().request()) }).build()
    }

    @Benchmark
    fun get(): Response = http.newCall(get).execute()

    @Benchmark
    fun post(): Response = http.newCall(post).execute()
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

internal fun measureSuccess() {
    val options =
        OptionsBuilder()
            .include(SuccessPath::class.java.name)
            .timeUnit(TimeUnit.NANOSECONDS)
            .mode(Mode.SampleTime)
            .forks(3)
            .warmupIterations(5)
            .warmupTime(TimeValue.milliseconds(500))
            .measurementIterations(20)
            .measurementTime(TimeValue.milliseconds(200))
            .addProfiler(GCProfiler::class.java)
            .verbosity(VerboseMode.SILENT)
            .build()
    val results = Runner(options).run().sortedBy { it.request }
    val table = Table("request", "client", "best ns", "more", "bytes", "more")
    for ((request, of) in results.groupBy { it.request }) {
        val least = of.single { it.client == "proceeds" }
        for (result in of) {
            table.row(
                request,
                result.client,
                "%.0f".format(result.nanos),
                "%+.0f".format(result.nanos - least.nanos),
                "%.0f".format(result.bytes),
                "%+.0f".format(result.bytes - least.bytes),
            )
        }
    }
    table.print()
}

private val RunResult.request get() = params.benchmark.substringAfterLast('.')

private val RunResult.client get() = params.getParam("client")

private val RunResult.nanos get() = iterations().minOf { it.primaryResult.statistics.getPercentile(50.0) }

private val RunResult.bytes get() = iterations().minOf { it.secondaryResults.getValue("gc.alloc.rate.norm").score }

private fun RunResult.iterations() = benchmarkResults.flatMap { it.iterationResults }
