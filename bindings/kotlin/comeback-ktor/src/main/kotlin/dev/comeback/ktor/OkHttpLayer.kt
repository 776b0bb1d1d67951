// Inside Ktor's OkHttp engine: hands limits to OkHttp, keeps it from sending again what must not be, and tells what went out.
package dev.comeback.ktor

import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.okhttp.NotResentException
import dev.comeback.driver.okhttp.OwnInterceptor
import dev.comeback.driver.okhttp.RetryAfterEdit
import dev.comeback.driver.okhttp.asThrown
import dev.comeback.driver.okhttp.isRefused
import dev.comeback.driver.okhttp.limitedTo
import dev.comeback.driver.okhttp.onConnectionsOf
import okhttp3.Call
import okhttp3.Interceptor
import okhttp3.Response
import java.io.IOException

/** The first of all interceptors: makes of the header that came through the engine the tag by which layers further in stand down. */
internal object EngineEntrance : OwnInterceptor {
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
        val limited = chain.limitedTo(inEngine.outer.inactivityNanos, inEngine.outer.connectNanos).onFreshConnection(inEngine)
        return EngineDns.inside(tag) { limited.proceed(request) }
    }

    private fun Interceptor.Chain.onFreshConnection(inEngine: EngineRequest): Interceptor.Chain {
        val url = request().url
        val connections = Connections(inEngine.ages, inEngine.path, url.scheme, url.host, url.port)
        inEngine.connections = connections
        val own = EngineDns.of(dns, connections.age)
        // Any other resolver is assumed to ask each time.
        if (!own.isSystems) inEngine.failedLookUpNanos = 0
        return onConnectionsOf(own, inEngine.ages)
    }
}

/** The last interceptor but those of the network: undoes what [EngineExit] has done to a head or to a failure. */
internal object HeadsAsSent : OwnInterceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val inEngine = InEngine.of(chain.call())
        val response =
            try {
                chain.proceed(chain.request())
            } catch (ended: NotResentException) {
                throw ended.asThrown()
            }
        return inEngine?.edit?.undone(response) ?: response
    }
}

/**
 * The first network interceptor: after it a head is written. It does what [RetryAfterEdit] says, which [HeadsAsSent] undoes. And it keeps OkHttp from sending
 * again by itself what must not be, and may have begun to go out. Another route, or another version of TLS, is still tried before that, and so is a stream
 * that was refused.
 */
internal object EngineExit : OwnInterceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val inEngine = InEngine.of(chain.call()) ?: return chain.proceed(chain.request())
        val entered = inEngine.request
        val isFirst = !entered.mayHaveGoneOut
        if (!entered.goesOut()) throw IOException("Canceled")
        val response =
            try {
                chain.proceed(chain.request())
            } catch (failure: IOException) {
                val reachedNobody = isRefused(failure) && !inEngine.mayBeSentElsewhere
                if (isFirst && reachedNobody) entered.wasRefused()
                throw if (reachedNobody || entered.mayResend) failure else NotResentException(failure)
            }
        val edit = RetryAfterEdit.of(response)
        inEngine.edit = edit
        return edit?.done(response) ?: response
    }
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
