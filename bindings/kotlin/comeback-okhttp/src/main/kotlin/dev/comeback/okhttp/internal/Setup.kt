// What interceptor and call factory of one client have in common: which requests they look after, and under which policy.
package dev.comeback.okhttp.internal

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.okhttp.ComebackOkHttp
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
    val connections = Connections(comeback.connectionAges)

    /** Looks up a name after [Dns.SYSTEM] did not find one. */
    val lookUpAgain = Dns { hostname -> comeback.lookUpMemory.lookUpAgain(hostname, Dns.SYSTEM::lookup) }
    val endedWaits = EndedWaits(comeback.time)
    private val client = SupportedClient(comeback)

    /** The latest call's. */
    @Volatile
    private var lastCode: ClientCode? = null

    /**
     * What runs inside a call that comes by [chain] and that Comeback enters at [entry]. Null if Comeback cannot look after it; that is told once, and
     * requests go as without us.
     */
    fun codeOf(
        chain: Interceptor.Chain,
        entry: Interceptor,
    ): ClientCode? {
        if (!client.isNewEnough(chain)) return null
        val of = (chain.call() as? RealCall)?.client ?: return ClientCode.UNKNOWN
        val code = lastCode?.takeIf { it.isOf(of, entry) } ?: ClientCode(of, entry).also { lastCode = it }
        return if (client.isGuarded(code)) code else null
    }

    /** The same, found out of a call that is not under way yet. */
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

/** With what has to be on the network's side of a client that Comeback acts on; once. */
internal fun OkHttpClient.Builder.guarded(): OkHttpClient.Builder =
    apply {
        if (networkInterceptors().any { it is FollowUpGuard }) return@apply
        if (networkInterceptors().isEmpty()) {
            addNetworkInterceptor(FollowUpGuard.ALONE)
        } else {
            networkInterceptors().add(0, FollowUpGuard.OUTERMOST)
            addNetworkInterceptor(ReplayCheck)
        }
    }

/** Such a request cannot be begun anew. */
internal fun asksForUpgrade(request: Request): Boolean =
    request.header("Connection") != null &&
        request.headers("Connection").any { line -> line.split(',').any { it.trim().equals("upgrade", ignoreCase = true) } }
