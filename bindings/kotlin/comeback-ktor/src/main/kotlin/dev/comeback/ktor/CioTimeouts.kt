// The timeouts of Ktor's CIO engine, which it forgets for a request that has some of its own.
package dev.comeback.ktor

import dev.comeback.driver.NANOS_PER_MILLI
import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIOEngineConfig
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.client.request.HttpRequestBuilder
import kotlinx.coroutines.CompletableJob
import kotlinx.coroutines.cancel

/** Touched only where the engine is on the class path. */
internal class CioTimeouts private constructor(
    config: CIOEngineConfig,
) {
    val connectMillis: Long = config.endpoint.connectTimeout
    val socketMillis: Long? = config.endpoint.socketTimeout.takeIf { it != HttpTimeoutConfig.INFINITE_TIMEOUT_MS }
    private val requestMillis = config.requestTimeout

    /** It is for the whole request, its response's body included. */
    fun keepRequestTimeout(
        request: HttpRequestBuilder,
        client: HttpClient,
        job: CompletableJob,
    ) {
        if (requestMillis == 0L || requestMillis == HttpTimeoutConfig.INFINITE_TIMEOUT_MS) return
        val timer =
            client.coroutineContext.runIn(requestMillis * NANOS_PER_MILLI) {
                job.cancel("Request is timed out", HttpRequestTimeoutException(request.url.buildString(), requestMillis))
            }
        job.invokeOnCompletion { timer.dispose() }
    }

    companion object {
        /** Whether [client] shares connections; requests with timeouts of their own get one of their own. */
        fun arePipelined(client: HttpClient): Boolean = (client.engine.config as? CIOEngineConfig)?.pipelining == true

        /** Null for another engine. */
        fun of(client: HttpClient): CioTimeouts? = (client.engine.config as? CIOEngineConfig)?.let(::CioTimeouts)
    }
}
