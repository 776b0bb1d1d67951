// The door into Comeback: which calls it looks after, under which policy, and which it lets pass.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.NetworkSnapshot
import dev.comeback.NetworkState
import dev.comeback.RetryPolicy
import dev.comeback.driver.CallSession
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.OwnCode
import dev.comeback.okhttp.internal.AttemptDns
import dev.comeback.okhttp.internal.AttemptEnd
import dev.comeback.okhttp.internal.BlockingLoop
import dev.comeback.okhttp.internal.CallLayer
import dev.comeback.okhttp.internal.ClientCode
import dev.comeback.okhttp.internal.FIRST_ERROR
import dev.comeback.okhttp.internal.InnerCall
import dev.comeback.okhttp.internal.MakeIdempotencyKey
import dev.comeback.okhttp.internal.OnCallback
import dev.comeback.okhttp.internal.Setup
import dev.comeback.okhttp.internal.asNew
import dev.comeback.okhttp.internal.asksForUpgrade
import dev.comeback.okhttp.internal.cutTimer
import dev.comeback.okhttp.internal.makeAttempt
import dev.comeback.okhttp.internal.takesBody
import dev.comeback.okhttp.internal.tellBlocks
import dev.comeback.okhttp.internal.tellOnSameCall
import dev.comeback.retryReport
import okhttp3.Call
import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import okhttp3.internal.connection.RealCall
import java.io.IOException

/**
 * Sends failed requests again as a [RetryPolicy] says, and ends a wait when the network is back. [comeback] adds it to a client, and with it what
 * keeps OkHttp from sending by itself what must not be repeated; without that it lets everything pass. A call that waits blocks its thread;
 * [okhttp3.Call.cancel], an interrupt and [Comeback.close] end the wait at once.
 *
 * A first attempt goes as it would without this. What reaches the caller is the last attempt's response or exception, with a report attached
 * ([Response.retryReport], [dev.comeback.retryReport]); if that response had to be closed before a wait that then was cut short, a
 * [dev.comeback.RetryStoppedException]. Web-socket upgrades pass.
 */
public class ComebackInterceptor
    internal constructor(
        private val comeback: Comeback,
        policy: RetryPolicy = RetryPolicy.DEFAULT,
        options: ComebackOkHttp = ComebackOkHttp(),
    ) : Interceptor,
        OwnCode {
        internal val setup = Setup(comeback, policy, options)

        @Throws(IOException::class)
        override fun intercept(chain: Interceptor.Chain): Response {
            val call = chain.call()
            val code =
                (if (chain.connection() == null) setup.codeOf(chain, entry = this) else null) ?: return chain.proceed(chain.request())
            val layer = CallLayer.of(call)
            // The outermost layer acts.
            if (layer.isActive) return tellOnSameCall(chain, setup, layer, code)
            val outer = OuterAttempt.onThisThread ?: layer.innerCall?.outer ?: chain.request().tag(OuterAttempt::class.java)
            if (outer != null) return standDown(chain, layer, outer, code)
            val request = asNew(chain.request())
            val policy = setup.policyFor(request)
            val told = tellBlocks(call, request, policy)
            val facts = policy.driverFacts
            if (facts == null || comeback.isClosed || passes(call, request) || !layer.enter()) return chain.proceed(request)
            var loop: BlockingLoop? = null
            try {
                val began = comeback.time.nanos()
                val network = comeback.networkFor(facts, request.url.host)
                val noted = network.snapshot
                val reportsBefore = CallSession.reports
                var first: AttemptEnd? = null
                if (goesAsItIs(chain, request, facts, noted)) {
                    first =
                        makeAttempt(
                            chain,
                            request,
                            layer,
                            facts,
                            code.runsAppsCode,
                            cutTimer(call, facts, spentNanos = 0),
                        ) { response ->
                            if (isAllThereIs(response)) return response
                        }
                }
                loop = BlockingLoop(chain, request, setup, policy, facts, layer, network, began, code)
                return loop.run(noted, first, reportsBefore)
            } catch (thrown: Throwable) {
                if (thrown.retryReport?.mayHaveArrived == false) told?.forEach { it.ended(sentNothing = true) }
                if (thrown is IOException || thrown === loop?.foreign) throw thrown
                // OkHttp lets anything else kill the app.
                throw IOException("Comeback failed", thrown)
            } finally {
                layer.leave()
            }
        }

        /**
         * Whether there is nothing to prepare, put on the chain or listen to for the first attempt. Most calls are such and succeed at once; they
         * cost next to nothing.
         */
        private fun goesAsItIs(
            chain: Interceptor.Chain,
            request: Request,
            facts: DriverFacts,
            noted: NetworkSnapshot,
        ): Boolean =
            !takesBody(request.method) &&
                request.body == null &&
                facts.mayRepeat(request.method) &&
                !facts.makesKey(request.method) &&
                request.tag(MakeIdempotencyKey::class.java) == null &&
                noted.state != NetworkState.OFFLINE &&
                noted.state != NetworkState.BLOCKED &&
                !facts.clientResendsOff &&
                facts.attemptTimeoutNanos == null &&
                facts.connectTimeoutNanos == null &&
                chain.dns is AttemptDns &&
                setup.connections.ageFor(request.url, noted.path) == null

        /** Nobody wants to hear of this success. */
        private fun isAllThereIs(response: Response): Boolean =
            response.code < FIRST_ERROR && !comeback.hasListener && !setup.hooks.classifies

        private fun standDown(
            chain: Interceptor.Chain,
            layer: CallLayer,
            outer: OuterAttempt,
            code: ClientCode,
        ): Response {
            val innerCall = layer.innerCall
            layer.innerCall = null
            // It may have become another request on its way here; then that one is told beside it.
            if (innerCall != null && innerCall.original !== chain.request()) innerCall.isReplaced()
            val inner = innerCall?.takeIf { it.original === chain.request() } ?: InnerCall(setup, outer, chain.request())
            try {
                return inner.proceed(chain, layer, code)
            } finally {
                if (innerCall != null) OuterAttempt.stays(OnCallback(chain.call(), outer))
            }
        }

        /** Upgrades cannot be begun anew. */
        private fun passes(
            call: Call,
            request: Request,
        ): Boolean = (call as? RealCall)?.forWebSocket == true || asksForUpgrade(request)
    }
