// The plugin's part in HttpSend: decides for one client which requests Comeback looks after, and sees each of them off into the engine.
package dev.comeback.ktor

import dev.comeback.RetryPolicy
import dev.comeback.coroutines.LayerElement
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.OuterAttempt
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.HttpRequestRetry
import io.ktor.client.plugins.Sender
import io.ktor.client.plugins.pluginOrNull
import io.ktor.client.request.ClientUpgradeContent
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.http.content.OutgoingContent
import io.ktor.http.isWebsocket
import io.ktor.util.Attributes
import io.ktor.utils.io.InternalAPI
import kotlinx.coroutines.currentCoroutineContext
import java.util.UUID
import kotlin.coroutines.CoroutineContext

internal class SendInterceptor(
    private val setup: Setup,
) {
    private val comeback = setup.comeback
    private val hooks = setup.hooks

    @Volatile
    private var isLookedThrough = false

    suspend fun send(
        sender: Sender,
        request: HttpRequestBuilder,
    ): HttpClientCall {
        if (!isLookedThrough) lookForAnotherRetry()
        val loop = loopFor(request, currentCoroutineContext()) ?: return sender.execute(request)
        return loop.run(sender, request)
    }

    /** At the first request, because plugins may be installed after this one. */
    private fun lookForAnotherRetry() {
        isLookedThrough = true
        if (setup.client.pluginOrNull(HttpRequestRetry) != null) comeback.reportSetup(TWO_RETRIES)
    }

    /** Null if the request passes. */
    private fun loopFor(
        request: HttpRequestBuilder,
        context: CoroutineContext,
    ): SendLoop? {
        val attribute = request.attributes.getOrNull(RequestAttribute.KEY)
        val before = (attribute as? SendLoop)?.takeIf { it.executionContext === request.executionContext }
        if (before != null && before.isRedirected && !before.isOver) return before
        val choices = request.choices
        val policy = choices.policy ?: hooks.policyFor(request) ?: hooks.policy
        val facts = policy.driverFacts
        val outer = LayerElement.of(context)
        if (facts == null || comeback.isClosed || outer != null || isUpgrade(request)) {
            if (outer != null) {
                below(request, outer, policy, choices)
            } else if (attribute != null) {
                request.attributes.remove(RequestAttribute.KEY)
            }
            return null
        }
        takeStrangeKey(request)
        val keyIsMade = makesKey(request, choices, facts) && ensureKey(request, facts)
        val body = BodyWatch.of(request.body as OutgoingContent, choices.vouchesForBody)
        val now = comeback.time.nanos()
        return SendLoop(
            setup,
            policy,
            request,
            body,
            keyIsMade,
            began = before?.began ?: now,
            attemptBegan = now,
            sentBefore =
                before?.sends ?: 0,
        )
    }

    /** A layer further out has the call, and is told of it. */
    private fun below(
        request: HttpRequestBuilder,
        outer: OuterAttempt,
        policy: RetryPolicy,
        choices: Choices,
    ) {
        val facts = policy.driverFacts
        takeStrangeKey(request)
        val keyIsMade = facts != null && makesKey(request, choices, facts) && ensureKey(request, facts)
        // A plugin further in may send the request, key and all, through another client first.
        if (keyIsMade) outer.keyIsMade(request.headers.getAll(checkNotNull(facts).keyHeader).orEmpty())
        val below = Below(outer, policy, keyIsMade, setup, request)
        if (isUpgrade(request)) {
            // Its end is not reported.
            request.attributes.remove(RequestAttribute.KEY)
        } else {
            request.attributes.put(RequestAttribute.KEY, below)
        }
    }

    @OptIn(InternalAPI::class)
    private fun isUpgrade(request: HttpRequestBuilder) = request.url.protocol.isWebsocket() || request.body is ClientUpgradeContent

    private fun makesKey(
        request: HttpRequestBuilder,
        choices: Choices,
        facts: DriverFacts,
    ) = choices.makesKey || facts.makesKey(request.method.value)

    /**
     * A request that was made from one that Comeback sent has its key; by it the server would take an order for the one before. A copy of a request that failed,
     * with nothing changed, is that request again.
     */
    private fun takeStrangeKey(request: HttpRequestBuilder) {
        val made = request.attributes.getOrNull(MadeKey.KEY) ?: return
        if (!made.isStrangeTo(request)) return
        request.headers.remove(made.header)
        request.attributes.remove(MadeKey.KEY)
    }

    /** On the request itself, so that redirects take it along. False if it had one. */
    private fun ensureKey(
        request: HttpRequestBuilder,
        facts: DriverFacts,
    ): Boolean {
        if (!request.headers[facts.keyHeader].isNullOrBlank()) return false
        val key = UUID.randomUUID().toString().let { if (facts.keyQuoted) "\"$it\"" else it }
        request.headers[facts.keyHeader] = key
        request.attributes.put(MadeKey.KEY, MadeKey(request, facts.keyHeader, key))
        return true
    }

    /** The last moment before the engine has the request: every other plugin has had its say. */
    fun enters(request: HttpRequestBuilder) {
        // A request made from one that was sent has its headers.
        if (Engine.someTakesLayers) request.headers.remove(OuterAttempt.header)
        request.attributes.onItsWay?.enters(request)
    }
}

private const val TWO_RETRIES =
    "a Ktor client has HttpRequestRetry and Comeback's plugin, and each repeats what the other has repeated: remove install(HttpRequestRetry)"

/** Who hears of the request with these attributes, if anybody does. */
internal val Attributes.onItsWay: OnItsWay? get() = getOrNull(RequestAttribute.KEY) as? OnItsWay
