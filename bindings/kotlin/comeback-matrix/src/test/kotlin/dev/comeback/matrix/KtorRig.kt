// A call through the Ktor plugin, with the plugins that an app puts further in.
package dev.comeback.matrix

import dev.comeback.RetryPolicy
import dev.comeback.coroutines.AttemptResult
import dev.comeback.coroutines.RetryClassifier
import dev.comeback.coroutines.retry
import dev.comeback.ktor.ktorPlugin
import dev.comeback.ktor.retryPolicy
import dev.comeback.ktor.retryReport
import dev.comeback.okhttp.comeback
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.call.HttpClientCall
import io.ktor.client.engine.HttpClientEngine
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.engine.okhttp.OkHttpConfig
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.plugins.auth.Auth
import io.ktor.client.plugins.auth.providers.BearerTokens
import io.ktor.client.plugins.auth.providers.bearer
import io.ktor.client.plugins.cache.HttpCache
import io.ktor.client.plugins.logging.LogLevel
import io.ktor.client.plugins.logging.Logger
import io.ktor.client.plugins.logging.Logging
import io.ktor.client.plugins.timeout
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.get
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.client.request.request
import io.ktor.client.request.setBody
import io.ktor.client.request.takeFrom
import io.ktor.client.request.url
import io.ktor.client.statement.bodyAsText
import io.ktor.http.HttpMethod
import io.ktor.http.HttpStatusCode
import io.ktor.http.content.TextContent
import io.ktor.http.isSuccess
import io.ktor.util.AttributeKey
import java.io.IOException
import java.util.concurrent.TimeUnit.MILLISECONDS

internal class KtorRig(
    private val cell: Cell,
    private val server: FaultServer,
    private val label: String,
) : Rig {
    private val opened = ArrayList<HttpClient>()
    private val plain = client { limitAttempts(cell) }

    private val client =
        client {
            installComeback(cell, isSecond = false)
            limitAttempts(cell)
            when {
                cell.inner == Inner.SIGNING -> install(Signing)
                cell.inner == Inner.CACHE -> install(HttpCache)
                cell.inner == Inner.LOGGING -> install(Logging, bodies)
                cell.inner == Inner.SECOND && cell.driver == Driver.KTOR_CIO -> install(secondRetry())
                cell.inner.isAuth -> installAuth()
                cell.inner.refresh != null -> install(tokenPlugin())
                cell.inner.isFailover -> install(failover())
            }
        }

    private fun client(configure: HttpClientConfig<*>.() -> Unit): HttpClient {
        val client =
            if (cell.driver == Driver.KTOR_CIO) {
                HttpClient(CIO_ENGINE) { configure() }
            } else {
                HttpClient(OkHttp) {
                    engine { prepare() }
                    configure()
                }
            }
        return client.also { opened += it }
    }

    private fun OkHttpConfig.prepare() {
        config {
            if (cell.fault == Fault.LATE && !cell.preset.limitsAttempts) readTimeout(LATE_LIMIT_MILLIS, MILLISECONDS)
            if (cell.inner == Inner.SECOND) comeback(Comebacks.second, cell.policy) { label = { this@KtorRig.label } }
        }
    }

    override suspend fun call(key: String?): Answer {
        val response =
            client.request {
                method = HttpMethod(cell.send.method)
                url(if (cell.inner.startsWithOther) FaultServer.REFUSED_URL + "/main" else server.mainUrl)
                attributes.put(LABEL, label)
                if (cell.send != dev.comeback.matrix.Send.GET) setBody("order")
                if (key != null) header("Idempotency-Key", key)
            }
        response.bodyAsText()
        return Answer(response.status.value, response.headers.getAll("Retry-After").orEmpty(), response.retryReport)
    }

    override suspend fun warm() {
        client.get(server.warmUrl) { retryPolicy(RetryPolicy.OFF) }.bodyAsText()
    }

    override fun close() = opened.forEach(HttpClient::close)

    private fun HttpClientConfig<*>.installAuth() {
        install(Auth) {
            bearer {
                loadTokens { null }
                refreshTokens {
                    // Through the same client, as Ktor's documentation has it.
                    fetchToken(client) { markAsRefreshTokenRequest() }?.let { BearerTokens(it, "") }
                }
            }
        }
    }

    /** Null: the server gives none. */
    private suspend fun fetchToken(
        client: HttpClient,
        configure: HttpRequestBuilder.() -> Unit = {},
    ): String? {
        val response =
            client.post(server.tokenUrl) {
                setBody("refresh")
                if (cell.inner.refresh == Refresh.TIMEOUT) timeout { requestTimeoutMillis = FaultServer.REFRESH_LIMIT_MILLIS }
                configure()
            }
        return response.bodyAsText().takeIf { response.status.isSuccess() }
    }

    private fun tokenPlugin() =
        createClientPlugin("Token") {
            var token: String? = null
            on(Send) { request ->
                token?.let { request.headers["Authorization"] = "Bearer $it" }
                val answered = proceed(request)
                if (answered.response.status != HttpStatusCode.Unauthorized) return@on answered
                token = fetchToken(plain) ?: throw IOException("signed out")
                request.headers["Authorization"] = "Bearer $token"
                proceed(request)
            }
        }

    private fun failover() =
        createClientPlugin("Failover") {
            val other = client { if (cell.inner.otherHasComeback) installComeback(cell, isSecond = true) }

            suspend fun askOther(
                request: HttpRequestBuilder,
                url: String,
            ) = other.request(HttpRequestBuilder().takeFrom(request).apply { url(url) }).call

            on(Send) { request ->
                val first = answered { if (cell.inner.startsWithOther) askOther(request, server.mainUrl) else proceed(request) }
                when {
                    first != null -> first
                    cell.inner.startsWithOther -> proceed(request)
                    else -> askOther(request, FaultServer.REFUSED_URL + "/main")
                }
            }
        }

    private inline fun answered(ask: () -> HttpClientCall): HttpClientCall? =
        try {
            ask().takeIf { it.response.status.value < 400 }
        } catch (_: IOException) {
            null
        }

    private fun secondRetry() =
        createClientPlugin("SecondRetry") {
            on(Send) { request ->
                Comebacks.second.retry(cell.policy, CALLS, label) { proceed(request) }
            }
        }

    private companion object {
        val CIO_ENGINE: HttpClientEngine by lazy { CIO.create() }
    }
}

private val LABEL = AttributeKey<String>("MatrixLabel")

private fun HttpClientConfig<*>.installComeback(
    cell: Cell,
    isSecond: Boolean,
) {
    install((if (isSecond) Comebacks.second else Comebacks.first).ktorPlugin) {
        policy = cell.policy
        label = { it.attributes.getOrNull(LABEL) }
    }
}

private fun HttpClientConfig<*>.limitAttempts(cell: Cell) {
    val isClients = cell.fault == Fault.LATE && !cell.preset.limitsAttempts
    if (!isClients && cell.inner.refresh != Refresh.TIMEOUT) return
    install(HttpTimeout) { if (isClients) socketTimeoutMillis = LATE_LIMIT_MILLIS }
}

private val Signing =
    createClientPlugin("Signing") {
        on(Send) { request ->
            (request.body as? TextContent)?.let { request.headers["Signature"] = it.text.hashCode().toString() }
            proceed(request)
        }
    }

private val bodies: io.ktor.client.plugins.logging.LoggingConfig.() -> Unit = {
    level = LogLevel.ALL
    logger =
        object : Logger {
            override fun log(message: String) = Unit
        }
}

private val CALLS =
    object : RetryClassifier {
        override fun ofResult(result: Any?): AttemptResult? =
            (result as? HttpClientCall)?.let { AttemptResult.status(it.response.status.value) }
    }
