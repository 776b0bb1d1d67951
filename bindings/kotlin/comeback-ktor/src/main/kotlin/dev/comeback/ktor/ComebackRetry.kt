// The plugin: which requests of a Ktor client Comeback handles, and under which policy.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.api.ClientPlugin
import io.ktor.client.plugins.api.ClientPluginBuilder
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpSendPipeline
import io.ktor.client.utils.HttpRequestIsReadyForSending
import io.ktor.client.utils.HttpResponseReceived
import io.ktor.util.pipeline.PipelinePhase

/**
 * The plugin for Ktor's client. It sends failed requests again as a [RetryPolicy] says, and ends a wait when the network is back.
 *
 * ```
 * val http = HttpClient(OkHttp) {
 *     install(comeback.ktorPlugin) { policy = RetryPolicy.READ }
 * }
 * http.post("/orders") { retryPolicy(RetryPolicy.PAYMENT) }
 * ```
 *
 * A first attempt goes as it would without this. The caller gets the last attempt's response or exception, with a report attached ([retryReport],
 * [dev.comeback.retryReport]). If that response was closed before a wait and the call ended in the wait, it is a [dev.comeback.RetryStoppedException]. A call
 * that waits holds neither a thread nor a connection; it ends with its coroutine, with the client, and with [Comeback.close]. An attempt on a network that is
 * gone is begun anew on the next network, if the request may go again. Redirects belong to their call. Web-socket upgrades pass. Inside
 * `comeback.retry { }` the plugin stands down, and the block decides.
 *
 * **A request that must not be repeated is not.** A failure counts as never sent only with proof about everything that was sent in this attempt, whatever
 * plugins further in do. The OkHttp engine says when a head goes out; for other engines only exceptions that they threw themselves count, by their type.
 * Install this before plugins that send several requests, such as `Auth`.
 *
 * Ktor's OkHttp engine is told what it must not re-send by itself. That needs OkHttp 5.4, which Ktor 3.6 brings, and an engine that is not in use yet;
 * otherwise `install` throws an [IllegalStateException] that says what to do. A shared engine is prepared by `comeback()` in its configuration
 * (`OkHttpConfig.comeback`). CIO sends nothing again by itself, Apache5 is told not to. The Java engine sends a GET or HEAD again when the server dropped its
 * idle connection, whatever the policy says; Android's engine may do so too.
 *
 * After the network has changed, attempts through the OkHttp engine use no connection from before. CIO makes a new connection for each request unless
 * `pipelining` is on. Java's connections are that engine's own, and may be dead.
 *
 * CIO takes a chunked answer whose connection ends in order between two chunks for the whole answer and tells nobody, so `read_body` cannot see it.
 *
 * The request timeout of `HttpTimeout` limits the whole call, waits included, if it was installed before this; installed after this, it limits each attempt.
 *
 * An interceptor of Comeback's inside Ktor's OkHttp engine stands down.
 */
public val Comeback.ktorPlugin: ClientPlugin<ComebackRetryConfig>
    get() = createClientPlugin(PLUGIN, { ComebackRetryConfig(this) }) { putIn() }

/** One name for the plugin of every [Comeback], so that a client has one of them. */
private const val PLUGIN = "ComebackRetry"

private fun ClientPluginBuilder<ComebackRetryConfig>.putIn() {
    val comeback = pluginConfig.comeback
    val hooks = Hooks(pluginConfig)
    requireBelow(hooks.policy, pluginConfig.maxSendCount)
    val interceptor = SendInterceptor(Setup(client, comeback, hooks))
    client.monitor.subscribe(HttpRequestIsReadyForSending, interceptor::enters)
    client.monitor.subscribe(HttpResponseReceived) {
        it.call.attributes.onItsWay
            ?.headCame(it)
    }
    client.sendPipeline.insertPhaseBefore(HttpSendPipeline.Engine, ENGINE)
    client.sendPipeline.intercept(ENGINE) {
        try {
            proceed()
        } catch (thrown: Throwable) {
            context.attributes.onItsWay?.engineThrew(thrown)
            throw thrown
        }
    }
    // What `on(Send)` does, without its two objects per call.
    client.plugin(HttpSend).intercept(interceptor::send)
}

/** The last before the engine's own. */
internal val ENGINE: PipelinePhase = PipelinePhase("ComebackEngine")

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
