// The door into Comeback: which requests of a Ktor client it looks after, and under which policy.
package dev.comeback.ktor

import dev.comeback.CallSession
import dev.comeback.Comeback
import dev.comeback.LayerAbove
import dev.comeback.RequestFacts
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.LayerElement
import io.ktor.client.HttpClient
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.HttpTimeoutCapability
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.client.plugins.api.ClientPlugin
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.plugins.pluginOrNull
import io.ktor.client.request.ClientUpgradeContent
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.utils.HttpRequestIsReadyForSending
import io.ktor.client.utils.HttpResponseReceived
import io.ktor.http.HttpHeaders
import io.ktor.http.content.OutgoingContent
import io.ktor.http.isWebsocket
import io.ktor.util.AttributeKey
import io.ktor.utils.io.InternalAPI
import kotlinx.coroutines.currentCoroutineContext
import java.util.UUID

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
        val door = Door(client, comeback, hooks)
        client.monitor.subscribe(HttpRequestIsReadyForSending, door::limit)
        client.monitor.subscribe(HttpResponseReceived) {
            it.call.attributes
                .getOrNull(AttemptGuard.KEY)
                ?.headCame()
        }
        on(Send) { request -> door.send(this, request) }
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
    private val client: HttpClient,
    private val comeback: Comeback,
    private val hooks: Hooks,
) {
    /** Installed before this one, it is outside: its request timeout is the whole call's. */
    private val isTimeoutOutside = client.pluginOrNull(HttpTimeout) != null

    private val engine = Engine(client, comeback)

    suspend fun send(
        sender: Send.Sender,
        request: HttpRequestBuilder,
    ): HttpClientCall {
        val state = stateOf(request) ?: return sender.proceed(request)
        return SendLoop(sender, client, comeback, hooks, engine, request, state).run()
    }

    /** Null if the request passes. */
    private suspend fun stateOf(request: HttpRequestBuilder): CallState? {
        val before = request.attributes.getOrNull(CallState.KEY)?.takeIf { it.executionContext === request.executionContext }
        if (before != null && before.isRedirected && !before.isOver) return before
        val policy = request.attributes.getOrNull(POLICY) ?: hooks.policyFor(request) ?: hooks.policy
        val facts = policy.driverFacts
        val isBelow = LayerElement.isIn(currentCoroutineContext())
        if (facts == null || comeback.isClosed || isUpgrade(request) || isBelow) {
            passes(request, isBelow)
            return null
        }
        val key = keyOf(request, policy)
        val body = BodyWatch(request.body as OutgoingContent, REPLAYABLE in request.attributes)
        val timeouts = request.getCapabilityOrNull(HttpTimeoutCapability)
        val began = before?.session?.began ?: comeback.time.nanos()
        val session =
            CallSession(
                comeback,
                policy,
                label = if (comeback.hasListener) hooks.label(request) else null,
                facts =
                    RequestFacts(
                        method = request.method.value,
                        hasKey = key != null,
                        conditional = CONDITIONS.any { it in request.headers },
                        hasBody = body.exists,
                        bodyReplayable = body.isReplayable,
                        onlyIfCached =
                            request.headers
                                .getAll(HttpHeaders.CacheControl)
                                .orEmpty()
                                .any { ONLY_IF_CACHED in it.lowercase() },
                    ),
                began = began,
                clientEnd = if (isTimeoutOutside) timeouts?.end(began) else null,
            )
        request.attributes.remove(BELOW)
        return CallState(request.executionContext, session, facts, body, key, timeouts).also { request.attributes.put(CallState.KEY, it) }
    }

    /** A request made from one of ours has its attributes, but they are not about it. [isBelow]: a layer further out has it, and those further in too. */
    private fun passes(
        request: HttpRequestBuilder,
        isBelow: Boolean,
    ) {
        request.attributes.remove(CallState.KEY)
        request.attributes.remove(AttemptGuard.KEY)
        if (isBelow) request.attributes.put(BELOW, Unit) else request.attributes.remove(BELOW)
    }

    @OptIn(InternalAPI::class)
    private fun isUpgrade(request: HttpRequestBuilder) = request.url.protocol.isWebsocket() || request.body is ClientUpgradeContent

    /** The request's key, made now if one is wanted; on the request itself, so that redirects take it along. */
    private fun keyOf(
        request: HttpRequestBuilder,
        policy: RetryPolicy,
    ): String? {
        val facts = policy.driverFacts ?: return null
        request.headers[facts.keyHeader]?.takeIf(String::isNotBlank)?.let { return it }
        if (!facts.makesKey(request.method.value) && MAKE_KEY !in request.attributes) return null
        val key = UUID.randomUUID().toString().let { if (facts.keyQuoted) "\"$it\"" else it }
        request.headers[facts.keyHeader] = key
        return key
    }

    /** The last moment before the engine has the request: every other plugin has had its say. */
    fun limit(request: HttpRequestBuilder) {
        // A request made from one that was sent has its headers.
        request.headers.remove(LayerAbove.header)
        if (BELOW in request.attributes && engine.takesLayers) request.headers[LayerAbove.header] = LayerAbove(false, null, null).encoded()
        val guard = request.attributes.getOrNull(AttemptGuard.KEY) ?: return
        guard.goesOut()
        val inactivity = guard.inactivityNanos
        val connect = listOfNotNull(inactivity, guard.facts.connectTimeoutNanos).minOrNull()
        if (engine.takesLayers) {
            request.headers[LayerAbove.header] = LayerAbove(guard.facts.clientResendsOff, connect, inactivity, guard.notedPath).encoded()
        } else if ((connect != null || inactivity != null) && HttpTimeoutCapability in client.engine.supportedCapabilities) {
            val own = request.getCapabilityOrNull(HttpTimeoutCapability)
            val limited =
                HttpTimeoutConfig(
                    requestTimeoutMillis = own?.requestTimeoutMillis,
                    connectTimeoutMillis = shorter(own?.connectTimeoutMillis, connect),
                    socketTimeoutMillis = shorter(own?.socketTimeoutMillis, inactivity),
                )
            request.setCapability(HttpTimeoutCapability, limited)
        }
    }

    private fun shorter(
        millis: Long?,
        nanos: Long?,
    ): Long? {
        val limit = nanos?.let { roundedUpToMillis(it).coerceAtLeast(1) }
        return if (millis == null || limit == null) millis ?: limit else minOf(millis, limit)
    }

    private fun HttpTimeoutConfig.end(began: Long): Long? =
        requestTimeoutMillis?.takeIf { it < Long.MAX_VALUE / NANOS_PER_MILLI }?.let { began + it * NANOS_PER_MILLI }

    private companion object {
        val CONDITIONS = listOf(HttpHeaders.IfMatch, HttpHeaders.IfNoneMatch, HttpHeaders.IfUnmodifiedSince)
        const val ONLY_IF_CACHED = "only-if-cached"
        const val NANOS_PER_MILLI = 1_000_000L
        val BELOW = AttributeKey<Unit>("ComebackBelow")
    }
}
