// Retries without a thread that waits: calls around an OkHttpClient's calls.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import okhttp3.Call
import okhttp3.OkHttpClient
import okhttp3.Request

/**
 * Makes calls that send failed requests again as a [RetryPolicy] says; the documented set-up for Retrofit. What [ComebackInterceptor] says of first
 * attempts, of the outcome and of its report holds here too. Beyond it:
 *
 * - A call that waits holds no thread, and none of the dispatcher's slots; [okhttp3.Dispatcher.cancelAll] does not know of it. After [Call.execute]
 *   the caller's own thread waits, of course.
 * - One attempt can be given up without the call: when its `attempt_timeout` is over, and when the network changed under it and the policy allows to
 *   begin it anew.
 *
 * Every attempt is a call of [client]'s, so all of its interceptors and event listeners see every attempt, as they see a call. The call's own timeout
 * spans all attempts and waits. A tag that is on the call when it starts is on every attempt's request, and a listener that is added to it hears every
 * attempt, each with the attempt's own call. Comeback's interceptor on [client] stands down.
 *
 * During a wait there is no call of [client]'s, so its own [okhttp3.EventListener] hears no `canceled` of a call that ends there, and nothing after the
 * attempt before. A listener that was added to the call ([Call.addEventListener]) does hear its cancel, though not the end of its timeout; what became
 * of every call is told to Comeback's [dev.comeback.RetryListener].
 *
 * Decisions are made on the thread of the attempt that ended, or after a wait on one thread that all calls share. There a hook or a
 * [dev.comeback.RetryListener] that takes its time delays all other calls whose wait is over: hand such work on to a thread of your own.
 * [okhttp3.Callback]s run on the dispatcher's threads, as ever.
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
                    addNetworkInterceptor(AttemptExit)
                }.build()

        override fun newCall(request: Request): Call = RetryCall(setup, client, request)
    }
