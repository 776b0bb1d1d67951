// Inside Ktor's OkHttp engine: hands limits to OkHttp, keeps it from sending again what must not be, and tells what went out.
package dev.comeback.ktor

import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.OwnCode
import dev.comeback.driver.orNull
import dev.comeback.driver.shortened
import okhttp3.Call
import okhttp3.Headers
import okhttp3.Interceptor
import okhttp3.Response
import okhttp3.internal.http2.ConnectionShutdownException
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import java.io.IOException
import java.net.ProtocolException
import java.util.concurrent.TimeUnit.MILLISECONDS

/** The first of all interceptors: makes of the header that came through the engine the tag by which layers further in stand down. */
internal object EngineEntrance : Interceptor, OwnCode {
    override fun intercept(chain: Interceptor.Chain): Response {
        val said = chain.request().header(OuterAttempt.header) ?: return chain.proceed(chain.request())
        val inEngine = EngineRequest.byNumber(said)
        val builder = chain.request().newBuilder().removeHeader(OuterAttempt.header)
        // What comes of a request whose attempt is over concerns nobody.
        if (inEngine == null) return chain.proceed(builder.build())
        val call = chain.call()
        val code = ClientCode.of(call)
        if (code.hasForeignInterceptors && !inEngine.onlyThisClientSends && !inEngine.goesToForeignCode()) throw IOException("Canceled")
        val tag = call.tag(InEngine.TYPE) { InEngine(inEngine, call, code) }
        val request = builder.tag(OuterAttempt::class.java, inEngine.outer).build()
        val limited = chain.limitedTo(inEngine).onFreshConnection(inEngine)
        return EngineDns.inside(tag) { limited.proceed(request) }
    }

    private fun Interceptor.Chain.onFreshConnection(inEngine: EngineRequest): Interceptor.Chain {
        val url = request().url
        val connections = Connections(inEngine.ages, inEngine.path, url.scheme, url.host, url.port)
        inEngine.connections = connections
        val age = connections.age
        val own = EngineDns.of(dns, age)
        // Any other resolver is assumed to ask each time.
        if (!own.isSystems) inEngine.failedLookUpNanos = 0
        if (own === dns) return this
        // What a socket throws when it is closed concerns nobody.
        if (age != null && inEngine.ages.isNewTo(connectionPool, inEngine.path)) orNull { connectionPool.evictAll() }
        return withDns(own)
    }

    private fun Interceptor.Chain.limitedTo(inEngine: EngineRequest): Interceptor.Chain {
        var chain = this
        shortened(connectTimeoutMillis(), inEngine.outer.connectNanos)?.let { chain = chain.withConnectTimeout(it, MILLISECONDS) }
        shortened(readTimeoutMillis(), inEngine.outer.inactivityNanos)?.let { chain = chain.withReadTimeout(it, MILLISECONDS) }
        shortened(writeTimeoutMillis(), inEngine.outer.inactivityNanos)?.let { chain = chain.withWriteTimeout(it, MILLISECONDS) }
        return chain
    }
}

/** The last interceptor but those of the network: undoes what [EngineExit] has done to a head or to a failure. */
internal object HeadsAsSent : Interceptor, OwnCode {
    override fun intercept(chain: Interceptor.Chain): Response {
        val inEngine = InEngine.of(chain.call())
        val response =
            try {
                chain.proceed(chain.request())
            } catch (ended: NotAgain) {
                throw ended.undone()
            }
        return inEngine?.edit?.undone(response) ?: response
    }
}

/**
 * The first network interceptor: after it a head is written. It also keeps OkHttp from following up a 408 or a 503 by itself, and from failing at a large
 * Retry-After: OkHttp reads a plain number there, so the number gets a plus sign, which [HeadsAsSent] removes. And it keeps OkHttp from sending again by itself
 * what must not be, and may have begun to go out. Another route, or another version of TLS, is still tried before that, and so is a stream that was refused.
 */
internal object EngineExit : Interceptor, OwnCode {
    override fun intercept(chain: Interceptor.Chain): Response {
        val inEngine = InEngine.of(chain.call()) ?: return chain.proceed(chain.request())
        val entered = inEngine.request
        val isFirst = !entered.mayHaveGoneOut
        if (!entered.goesOut()) throw IOException("Canceled")
        val response =
            try {
                chain.proceed(chain.request())
            } catch (failure: IOException) {
                val isRefused = reachedNobody(failure) && !inEngine.mayBeSentElsewhere
                if (isFirst && isRefused) entered.wasRefused()
                throw if (isRefused || entered.mayResend) failure else NotAgain(failure)
            }
        val edit = RetryAfterEdit.of(response)
        inEngine.edit = edit
        return edit?.done(response) ?: response
    }

    /** Refused before the server looked, or on a connection that already took no more. */
    private fun reachedNobody(failure: IOException) =
        failure is ConnectionShutdownException || (failure is StreamResetException && failure.errorCode == ErrorCode.REFUSED_STREAM)
}

/** [failure] in a form after which OkHttp does not send by itself again. Nobody but OkHttp sees it. */
private class NotAgain(
    private val failure: IOException,
) : ProtocolException(failure.message) {
    init {
        initCause(failure)
    }

    /** The very failure, with what OkHttp has attached meanwhile. */
    fun undone(): IOException {
        for (earlier in suppressed) if (earlier !== failure) failure.addSuppressed(earlier)
        return failure
    }

    override fun fillInStackTrace(): Throwable = this
}

/** What a call inside the engine was made for. */
internal class InEngine(
    val request: EngineRequest,
    val call: Call,
    code: ClientCode,
) {
    /** Whether network interceptors of the app's may have sent it through another client, and say what they like of it. */
    val mayBeSentElsewhere: Boolean = code.hasForeignNetworkInterceptors && !request.onlyThisClientSends

    /** What was changed in the head of the call's latest response, and is to be undone. */
    @Volatile
    var edit: RetryAfterEdit? = null

    companion object {
        /** Made once: each `::class` is an object. */
        val TYPE = InEngine::class

        fun of(call: Call): InEngine? = call.tag(TYPE)
    }
}

internal class RetryAfterEdit private constructor(
    private val original: List<String>,
    private val edited: List<String>,
) {
    fun done(response: Response): Response = response.withLines(edited)

    /** [response] as it came, if it is the one that was edited. */
    fun undone(response: Response): Response = if (response.headers(RETRY_AFTER) == edited) response.withLines(original) else response

    private fun Response.withLines(lines: List<String>): Response {
        val builder: Headers.Builder = headers.newBuilder().removeAll(RETRY_AFTER)
        // A server may send what OkHttp would not let an app say.
        for (line in lines) builder.addUnsafeNonAscii(RETRY_AFTER, line)
        return newBuilder().headers(builder.build()).build()
    }

    companion object {
        private const val RETRY_AFTER = "Retry-After"
        private const val CLIENT_TIMEOUT = 408
        private const val UNAVAILABLE = 503

        /** Null where OkHttp leaves [response] alone as it is. */
        fun of(response: Response): RetryAfterEdit? {
            if (response.code != UNAVAILABLE && response.code != CLIENT_TIMEOUT) return null
            val lines = response.headers(RETRY_AFTER)
            // Of several lines it reads the last.
            val read = lines.lastOrNull()
            val isLeftAlone =
                when {
                    read == null -> response.code == UNAVAILABLE
                    read.isEmpty() || !read.all(Char::isDigit) -> true
                    else -> read.toIntOrNull().let { it != null && it > 0 }
                }
            return if (isLeftAlone) null else RetryAfterEdit(lines, lines.dropLast(1) + "+${read ?: 0}")
        }
    }
}
