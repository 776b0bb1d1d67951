// Retries without a thread that waits: calls around an OkHttpClient's calls.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.okhttp.internal.AttemptDns
import dev.comeback.okhttp.internal.AttemptEntry
import dev.comeback.okhttp.internal.AttemptExit
import dev.comeback.okhttp.internal.BlockNoting
import dev.comeback.okhttp.internal.ClientEntry
import dev.comeback.okhttp.internal.FactoryCall
import dev.comeback.okhttp.internal.FollowUpGuard
import dev.comeback.okhttp.internal.Setup
import dev.comeback.okhttp.internal.guarded
import okhttp3.Call
import okhttp3.OkHttpClient
import okhttp3.Request
import java.util.concurrent.ConcurrentHashMap

/**
 * Makes calls that send failed requests again as a [RetryPolicy] says; the recommended set-up, also for Retrofit. First attempts, outcomes and reports are as
 * described for [ComebackInterceptor]. In addition:
 *
 * - A call that waits holds no thread and none of the dispatcher's slots, and [okhttp3.Dispatcher.cancelAll] does not reach it: [cancelAll] does. After [Call.execute] the
 *   caller's own thread waits.
 * - One attempt can be abandoned without ending the call: when its `attempt_timeout` is over, and when the network changed under it and the policy allows
 *   a new attempt.
 *
 * Every attempt is a call of [client]'s, so all of its interceptors and event listeners see every attempt, as they see a call: a call of three attempts
 * is three to [okhttp3.EventListener], each with its `callStart` and its `callEnd` or `callFailed`, and [attemptNumber] of their requests tells them
 * apart. The call's own timeout spans all attempts and waits. A tag that is on the call when it starts is on every attempt's request, and a listener that is added to it hears every
 * attempt, each with the attempt's own call. Comeback's interceptor on [client] stands down.
 *
 * During a wait there is no call of [client]'s. So its own [okhttp3.EventListener] hears nothing after the attempt before, and no `canceled` of a call that
 * ends in a wait. A listener that was added to the call ([Call.addEventListener]) hears the cancel, but not the end of the call's timeout. Comeback's
 * [dev.comeback.RetryListener] hears the end of every call.
 *
 * Decisions are made on the thread of the attempt that ended or, after a wait, on one of at most 16 threads that all calls share. A hook or
 * [dev.comeback.RetryListener] that blocks there holds up its own call; 16 at once hold up all whose wait is over. A slow listener gets a
 * [Comeback.Builder.listenerExecutor].
 * [okhttp3.Callback]s run on the dispatcher's threads, as usual.
 */
public class ComebackCallFactory
    @JvmOverloads
    constructor(
        comeback: Comeback,
        client: OkHttpClient,
        policy: RetryPolicy = RetryPolicy.DEFAULT,
        options: ComebackOkHttp = ComebackOkHttp(),
    ) : Call.Factory {
        private val setup = Setup(comeback, policy, options)
        private val client =
            client
                .newBuilder()
                .apply {
                    // The call as a whole is noted, not each attempt.
                    (client.eventListenerFactory as? BlockNoting)?.let { eventListenerFactory(it.apps) }
                    interceptors().add(0, AttemptEntry)
                    addInterceptor(ClientEntry)
                    guarded()
                    dns(AttemptDns.of(client.dns))
                    if (networkInterceptors().singleOrNull() !== FollowUpGuard.ALONE) addNetworkInterceptor(AttemptExit)
                }.build()

        private val underWay: MutableSet<FactoryCall> = ConcurrentHashMap.newKeySet()

        override fun newCall(request: Request): Call = FactoryCall(setup, client, request, underWay)

        /**
         * Cancels all calls of this factory that have started and not ended, those that wait included: what [okhttp3.Dispatcher.cancelAll] does for a client's
         * own calls, for instance when a user signs out. Calls that start later are not affected. May be called from any thread.
         */
        public fun cancelAll() {
            for (call in underWay) call.cancel()
        }
    }
