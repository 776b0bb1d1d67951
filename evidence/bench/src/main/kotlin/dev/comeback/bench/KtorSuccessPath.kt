// A call through Ktor that succeeds at once: Ktor alone (bare), with its own HttpRequestRetry, and with our plugin. An engine that only
// answers stands behind it, so that no socket hides the difference; each call is made in `runBlocking`, in every row the same. Success.kt says how to read the table.
package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.ktor.ktorPlugin
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.HttpClientEngineBase
import io.ktor.client.engine.HttpClientEngineConfig
import io.ktor.client.engine.callContext
import io.ktor.client.plugins.HttpRequestRetry
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.HttpTimeoutCapability
import io.ktor.client.request.HttpRequestData
import io.ktor.client.request.HttpResponseData
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.http.Headers
import io.ktor.http.HttpProtocolVersion
import io.ktor.http.HttpStatusCode
import io.ktor.util.date.GMTDate
import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.InternalAPI
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import org.openjdk.jmh.annotations.Benchmark
import org.openjdk.jmh.annotations.Param
import org.openjdk.jmh.annotations.Scope
import org.openjdk.jmh.annotations.Setup
import org.openjdk.jmh.annotations.State

@State(Scope.Thread)
open class KtorSuccessPath {
    @Param("bare", "HttpRequestRetry", "DEFAULT", "PAYMENT", "HttpRequestRetry, HttpTimeout", "READ")
    lateinit var client: String

    private lateinit var http: HttpClient

    @Setup
    fun build() {
        http =
            HttpClient(AnsweringEngine()) {
                when (client) {
                    "bare" -> {
                        Unit
                    }

                    "HttpRequestRetry" -> {
                        install(HttpRequestRetry) { retryOnServerErrors(maxRetries = 3) }
                    }

                    // The same deadline that READ has.
                    "HttpRequestRetry, HttpTimeout" -> {
                        install(HttpTimeout) { requestTimeoutMillis = 20_000 }
                        install(HttpRequestRetry) { retryOnServerErrors(maxRetries = 3) }
                    }

                    "DEFAULT" -> {
                        comebackRetry(RetryPolicy.DEFAULT)
                    }

                    "READ" -> {
                        comebackRetry(RetryPolicy.READ)
                    }

                    "PAYMENT" -> {
                        comebackRetry(RetryPolicy.PAYMENT)
                    }
                }
            }
    }

    private fun HttpClientConfig<*>.comebackRetry(chosen: RetryPolicy) =
        install(Comeback().ktorPlugin) {
            policy = chosen
        }

    @Benchmark
    fun get(): Int = runBlocking { http.get("http://127.0.0.1/").status.value }

    @Benchmark
    fun post(): Int = runBlocking { http.post("http://127.0.0.1/") { setBody("order") }.status.value }
}

/** Ktor's own MockEngine keeps every request. What [before] throws is how an attempt fails. */
internal class AnsweringEngine(
    private val before: () -> Unit = {},
) : HttpClientEngineBase("answering") {
    override val config = HttpClientEngineConfig().apply { dispatcher = Dispatchers.Unconfined }
    override val supportedCapabilities = setOf(HttpTimeoutCapability)
    private val requestTime = GMTDate(0)

    @InternalAPI
    override suspend fun execute(data: HttpRequestData): HttpResponseData {
        before()
        return HttpResponseData(
            HttpStatusCode.OK,
            requestTime,
            Headers.Empty,
            HttpProtocolVersion.HTTP_1_1,
            ByteReadChannel.Empty,
            callContext(),
        )
    }
}
