// The door into Comeback: which requests of a Ktor client it looks after, and under which policy.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.api.ClientPlugin
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpSendPipeline
import io.ktor.client.utils.HttpRequestIsReadyForSending
import io.ktor.client.utils.HttpResponseReceived
import io.ktor.util.pipeline.PipelinePhase

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
 * **What must not be repeated is not.** A failure counts as never sent only by proof about all that was sent in this attempt, whatever plugins further in
 * do: the OkHttp engine tells when a head goes out; of other engines only what they themselves threw counts, by its type. Install this before plugins that
 * send several requests, such as `Auth`.
 *
 * Ktor's OkHttp engine is told what it must not send again by itself. That needs OkHttp 5.4, which Ktor 3.6 brings, and an engine that is not in use yet;
 * `install` throws an [IllegalStateException] otherwise, which names the way out. A shared engine is prepared by `comeback()` in its configuration
 * (`OkHttpConfig.comeback`). CIO sends nothing again by itself, Apache5 is told not to. The Java engine sends a GET or HEAD again when the server dropped its
 * idle connection, whatever the policy says; Android's engine may do so too.
 *
 * After the network has changed, attempts through the OkHttp engine use no connection from before. CIO makes a new connection for each request unless
 * `pipelining` is on. Java's connections are that engine's own, and may be dead.
 *
 * Of [HttpTimeout] that was installed before this the request timeout limits the whole call, waits included; installed after it, each attempt.
 *
 * An interceptor of Comeback's inside Ktor's OkHttp engine stands down.
 */
public val ComebackRetry: ClientPlugin<ComebackRetryConfig> =
    createClientPlugin("ComebackRetry", ::ComebackRetryConfig) {
        val comeback = requireNotNull(pluginConfig.comeback) { "ComebackRetry needs `comeback`: the app's own, for instance Comeback { }" }
        val hooks = Hooks(pluginConfig)
        requireBelow(hooks.policy, pluginConfig.maxSendCount)
        val door = Door(Setup(client, comeback, hooks))
        client.monitor.subscribe(HttpRequestIsReadyForSending, door::enters)
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
        client.plugin(HttpSend).intercept(door::send)
    }

/** The last before the engine's own. */
private val ENGINE = PipelinePhase("ComebackEngine")

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
