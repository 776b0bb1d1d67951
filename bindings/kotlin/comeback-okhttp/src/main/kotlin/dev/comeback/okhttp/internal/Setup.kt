// What interceptor and call factory of one client have in common: which requests they look after, and under which policy.
package dev.comeback.okhttp.internal

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.driver.NameLookUp
import dev.comeback.okhttp.ComebackInterceptor
import dev.comeback.okhttp.ComebackOkHttp
import okhttp3.Authenticator
import okhttp3.Call
import okhttp3.CookieJar
import okhttp3.Dns
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.internal.connection.RealCall
import java.io.IOException

internal class Setup(
    val comeback: Comeback,
    private val policy: RetryPolicy,
    options: ComebackOkHttp,
) {
    val hooks = Hooks(options)
    val pools = FreshPools(comeback.snapshot.path)

    /** Null where the platform knows no better than the client how to look up names. */
    val names = comeback.connectivity as? NameLookUp
    val endedWaits = EndedWaits(comeback.time)
    private val client = SupportedClient(comeback)

    /** Whether Comeback can look after what comes by [chain]; if it cannot, that is told once, and requests go as without us. */
    fun canActOn(chain: Interceptor.Chain): Boolean = client.isSupported(chain)

    /** The same of a call that is not under way yet. */
    fun isUnsupported(problem: LinkageError): Unit = client.isTooOld(problem)

    private val annotations = retryAnnotations(options.policies)

    /** What the request says itself, then its Retrofit method, then the app's hook, then the client's. */
    @Throws(IOException::class)
    fun policyFor(request: Request): RetryPolicy =
        request.tag(RetryPolicy::class.java) ?: annotations?.policyFor(request) ?: hooks.policyFor(request) ?: policy
}

/** A request made from a delivered one has its tags, but that report is not about it. */
internal fun withoutReport(request: Request): Request {
    if (request.tag(RetryReport::class.java) == null) return request
    return request.newBuilder().tag(RetryReport::class.java, null).build()
}

/** An interceptor of Comeback's: it reads no body and sends nothing elsewhere. */
internal interface OwnInterceptor : Interceptor

/** Whether the app has interceptors between [outermost], where Comeback acts, and the client's own layer. */
internal fun hasForeignFurtherIn(
    outermost: Interceptor,
    call: Call,
): Boolean {
    val all = (call as? RealCall)?.client?.interceptors ?: return true
    val at = all.indexOfFirst { it === outermost }
    return at < 0 || (at + 1 until all.size).any { isForeign(all[it]) }
}

/** OkHttp's own, for instance those for logging and compression, read bodies that may be read again, and send nothing elsewhere. */
private fun isForeign(interceptor: Interceptor) =
    interceptor !is OwnInterceptor && interceptor !is ComebackInterceptor && !interceptor.javaClass.name.startsWith("okhttp3.")

/** Whether the app has network interceptors. */
internal fun hasForeignNetworkInterceptors(call: Call): Boolean =
    (call as? RealCall)?.client?.networkInterceptors?.any { it !is OwnInterceptor } ?: true

/** Whether code of the app's runs inside an attempt of [call], which may make calls of its own. */
internal fun runsAppsCode(
    outermost: Interceptor,
    call: Call,
): Boolean {
    val client = (call as? RealCall)?.client ?: return true
    return client.authenticator !== Authenticator.NONE ||
        client.dns !== Dns.SYSTEM ||
        client.cookieJar !== CookieJar.NO_COOKIES ||
        hasForeignNetworkInterceptors(call) ||
        hasForeignFurtherIn(outermost, call)
}

/** With what has to be on the network's side of a client that Comeback acts on; once. */
internal fun OkHttpClient.Builder.guarded(): OkHttpClient.Builder =
    apply {
        if (FollowUpGuard in networkInterceptors()) return@apply
        networkInterceptors().add(0, FollowUpGuard)
        addNetworkInterceptor(ReplayCheck)
    }

/** Such a request cannot be begun anew. */
internal fun asksForUpgrade(request: Request): Boolean =
    request.headers("Connection").any { line -> line.split(',').any { it.trim().equals("upgrade", ignoreCase = true) } }
