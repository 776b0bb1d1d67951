// The door into Comeback: which calls it looks after, under which policy, and which it lets pass.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.DriverFacts
import dev.comeback.NetworkSnapshot
import dev.comeback.NetworkState
import dev.comeback.OuterAttempt
import dev.comeback.RetryPolicy
import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import okhttp3.internal.connection.RealCall
import java.io.IOException

/**
 * Sends failed requests again as a [RetryPolicy] says, and ends a wait when the network is back. [comeback] adds it to a client, and with it what
 * keeps OkHttp itself from stumbling over Retry-After; by hand it goes among the application interceptors. A call that waits blocks its thread;
 * [okhttp3.Call.cancel], an interrupt and [Comeback.close] end the wait at once.
 *
 * A first attempt goes as it would without this. What reaches the caller is the last attempt's response or exception, with a report attached
 * ([Response.retryReport], [dev.comeback.retryReport]); if that response had to be closed before a wait that then was cut short, a
 * [dev.comeback.RetryStoppedException]. Web-socket upgrades pass.
 */
public class ComebackInterceptor
    @JvmOverloads
    constructor(
        private val comeback: Comeback,
        policy: RetryPolicy = RetryPolicy.DEFAULT,
        options: ComebackOkHttp = ComebackOkHttp(),
    ) : Interceptor {
        private val setup = Setup(comeback, policy, options)

        @Throws(IOException::class)
        override fun intercept(chain: Interceptor.Chain): Response {
            // The outermost layer acts: a Ktor plugin says so by a tag, which its own interceptor made of the header it sent, `retry {}` by the thread
            // that it runs on.
            if (OuterAttempt.onThisThread != null ||
                chain.request().tag(OuterAttempt::class.java) != null
            ) {
                return chain.proceed(chain.request())
            }
            val request = withoutReport(chain.request())
            val policy = setup.policyFor(request)
            val facts = policy.driverFacts
            if (facts == null || comeback.isClosed || passes(chain, request)) return chain.proceed(request)
            val layer = CallLayer.of(chain.call())
            // Comeback outside this one has the call; two would multiply attempts.
            if (!layer.enter()) return chain.proceed(request)
            var loop: RetryLoop? = null
            try {
                val began = comeback.time.nanos()
                val noted = comeback.snapshot
                val askedOn = setup.names?.network
                var first: Attempted? = null
                if (goesAsItIs(chain, request, facts, noted)) {
                    first =
                        attempted(chain, request, layer, cutTimer(chain.call(), facts, spentNanos = 0)) { response ->
                            if (isAllThereIs(response, noted)) return response
                        }
                }
                loop = RetryLoop(chain, request, setup, policy, facts, layer, began, askedOn, hasForeignFurtherIn(this, chain.call()))
                return loop.run(noted, first)
            } catch (thrown: Throwable) {
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
                setup.pools.poolFor(chain.connectionPool, noted.path) == null

        /** Nobody wants to hear of this success, and its connection is good. */
        private fun isAllThereIs(
            response: Response,
            noted: NetworkSnapshot,
        ): Boolean = response.code < FIRST_ERROR && !comeback.hasListener && !setup.hooks.classifies && comeback.snapshot.path == noted.path

        /** Upgrades cannot be begun anew, and a network interceptor is bound to one connection. */
        private fun passes(
            chain: Interceptor.Chain,
            request: Request,
        ): Boolean = (chain.call() as? RealCall)?.forWebSocket == true || asksForUpgrade(request) || chain.connection() != null
    }
