// The door into Comeback: which requests of a Ktor client it looks after, and under which policy.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.DriverFacts
import dev.comeback.OuterAttempt
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.LayerElement
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.HttpTimeoutCapability
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.client.plugins.Sender
import io.ktor.client.plugins.api.ClientPlugin
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.plugins.plugin
import io.ktor.client.request.ClientUpgradeContent
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.utils.HttpRequestIsReadyForSending
import io.ktor.client.utils.HttpResponseReceived
import io.ktor.http.content.OutgoingContent
import io.ktor.http.isWebsocket
import io.ktor.utils.io.InternalAPI
import kotlinx.coroutines.currentCoroutineContext
import java.util.UUID
import kotlin.coroutines.CoroutineContext

/**
 * Sends failed requests again as a [RetryPolicy] says, and ends a wait when the network is back.
 *
 * ```
 * val http = HttpClient(OkHttp) {
 *     install(ComebackRetry) {
 *         comeback = app.comeback
 *         policy = RetryPolicy.READ
 *     }
 * }
 * http.post("/orders") { retryPolicy(RetryPolicy.PAYMENT) }
 * ```
 *
 * A first attempt goes as it would without this. What reaches the caller is the last attempt's response or exception, with a report attached
 * ([retryReport], [dev.comeback.retryReport]); if that response had to be closed before a wait that then was cut short, a
 * [dev.comeback.RetryStoppedException]. A call that waits holds neither thread nor connection; it ends with its coroutine, with the client, with
 * [Comeback.close]. An attempt on a network that is gone is begun anew when the next one is there, if the request may go again. Redirects belong to
 * the call they came in. Web-socket upgrades pass; so does everything inside `comeback.retry { }`, which then has the call.
 *
 * After the network has changed, attempts through Ktor's OkHttp engine use no connection from before, where OkHttp is 5.4 or newer: Ktor 3.5 itself
 * brings 5.3, so name a newer one in the app. The connections of CIO and Java are these engines' own, and they may go on over one that is dead.
 *
 * Of [HttpTimeout] that was installed before this the request timeout limits the whole call, waits included; installed after it, each attempt.
 *
 * An interceptor of Comeback's inside Ktor's OkHttp engine stands down, unless the engine was shared with an older client that has no [ComebackRetry].
 */
public val ComebackRetry: ClientPlugin<ComebackRetryConfig> =
    createClientPlugin("ComebackRetry", ::ComebackRetryConfig) {
        val comeback = requireNotNull(pluginConfig.comeback) { "ComebackRetry needs `comeback`: the app's own, for instance Comeback { }" }
        val hooks = Hooks(pluginConfig)
        requireBelow(hooks.policy, pluginConfig.maxSendCount)
        val door = Door(Setup(client, comeback, hooks))
        client.monitor.subscribe(HttpRequestIsReadyForSending, door::limit)
        client.monitor.subscribe(HttpResponseReceived) { (it.call.attributes.getOrNull(Mark.KEY) as? Attempt)?.headCame() }
        // What `on(Send)` does, without its two objects per call.
        client.plugin(HttpSend).intercept(door::send)
    }

private fun requireBelow(
    policy: RetryPolicy,
    maxSendCount: Int,
) {
    val attempts = policy.driverFacts?.maxAttempts ?: return
    require(attempts < maxSendCount) {
        "max_attempts = $attempts: must be below the client's maxSendCount, $maxSendCount, which counts redirects too; " +
            "raise it by install(HttpSend) { maxSendCount = … } and say so here"
    }
}

private class Door(
    private val setup: Setup,
) {
    private val client = setup.client
    private val comeback = setup.comeback
    private val hooks = setup.hooks
    private val takesLayers = setup.engine.takesLayers

    suspend fun send(
        sender: Sender,
        request: HttpRequestBuilder,
    ): HttpClientCall {
        val loop = loopFor(request, currentCoroutineContext()) ?: return sender.execute(request)
        return loop.run(sender, request)
    }

    /** Null if the request passes. */
    private fun loopFor(
        request: HttpRequestBuilder,
        context: CoroutineContext,
    ): SendLoop? {
        val mark = request.attributes.getOrNull(Mark.KEY)
        val before = (mark as? SendLoop)?.takeIf { it.executionContext === request.executionContext }
        if (before != null && before.isRedirected && !before.isOver) return before
        val choices = request.choices
        val policy = choices.policy ?: hooks.policyFor(request) ?: hooks.policy
        val facts = policy.driverFacts
        val outer = LayerElement.of(context)
        if (facts == null || comeback.isClosed || isUpgrade(request) || outer != null) {
            passes(request, mark, outer)
            return null
        }
        if (choices.makesKey || facts.makesKey(request.method.value)) ensureKey(request, facts)
        val body = BodyWatch.of(request.body as OutgoingContent, choices.vouchesForBody)
        val now = comeback.time.nanos()
        return SendLoop(setup, policy, request, body, began = before?.began ?: now, attemptBegan = now)
    }

    /** [outer]: the attempt of a layer further out, which has it. */
    private fun passes(
        request: HttpRequestBuilder,
        mark: Mark?,
        outer: OuterAttempt?,
    ) {
        if (outer != null) {
            request.attributes.put(Mark.KEY, Mark.Below(outer))
        } else if (mark != null) {
            request.attributes.remove(Mark.KEY)
        }
    }

    @OptIn(InternalAPI::class)
    private fun isUpgrade(request: HttpRequestBuilder) = request.url.protocol.isWebsocket() || request.body is ClientUpgradeContent

    /** On the request itself, so that redirects take it along. */
    private fun ensureKey(
        request: HttpRequestBuilder,
        facts: DriverFacts,
    ) {
        if (!request.headers[facts.keyHeader].isNullOrBlank()) return
        val key = UUID.randomUUID().toString()
        request.headers[facts.keyHeader] = if (facts.keyQuoted) "\"$key\"" else key
    }

    /** The last moment before the engine has the request: every other plugin has had its say. */
    fun limit(request: HttpRequestBuilder) {
        // A request made from one that was sent has its headers.
        if (Engine.someTakesLayers) request.headers.remove(OuterAttempt.header)
        when (val mark = request.attributes.getOrNull(Mark.KEY)) {
            is Attempt -> limit(request, mark)
            is Mark.Below -> if (takesLayers) request.headers[OuterAttempt.header] = mark.outer.handle()
            else -> Unit
        }
    }

    private fun limit(
        request: HttpRequestBuilder,
        attempt: Attempt,
    ) {
        attempt.goesOut()
        val inactivity = attempt.inactivityNanos
        val connect = shorter(inactivity, attempt.facts.connectTimeoutNanos)
        if (takesLayers) {
            request.headers[OuterAttempt.header] = attempt.outer(connect).handle()
        } else if (connect != null && HttpTimeoutCapability in client.engine.supportedCapabilities) {
            val own = request.getCapabilityOrNull(HttpTimeoutCapability)
            val limited =
                HttpTimeoutConfig(
                    requestTimeoutMillis = own?.requestTimeoutMillis,
                    connectTimeoutMillis = shorter(own?.connectTimeoutMillis, millis(connect)),
                    socketTimeoutMillis = shorter(own?.socketTimeoutMillis, inactivity?.let(::millis)),
                )
            request.setCapability(HttpTimeoutCapability, limited)
        }
    }

    private fun millis(nanos: Long): Long = roundedUpToMillis(nanos).coerceAtLeast(1)

    /** Null is no limit. */
    private fun shorter(
        one: Long?,
        other: Long?,
    ): Long? = if (one == null || other == null) one ?: other else minOf(one, other)
}
