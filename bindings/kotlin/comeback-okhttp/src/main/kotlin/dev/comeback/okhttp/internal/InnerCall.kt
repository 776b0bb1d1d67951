// A call inside an attempt of a layer further out: this layer stands down, and reports the request to it.
package dev.comeback.okhttp.internal

import dev.comeback.AttemptEndedException
import dev.comeback.RetryPolicy
import dev.comeback.driver.AttemptSource
import dev.comeback.driver.Block
import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RequestHead
import dev.comeback.driver.okhttp.asThrown
import dev.comeback.driver.okhttp.limitedTo
import dev.comeback.driver.orNull
import okhttp3.Call
import okhttp3.EventListener
import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import okhttp3.internal.connection.RealCall
import java.io.IOException

/**
 * The request goes once. It is reported when this object is made, before anything of it goes out, and again when it has ended; until then it counts as sent. A
 * key that the policy wants is made all the same, because the server may require one; it does not make the request repeatable.
 */
internal class InnerCall(
    private val setup: Setup,
    val outer: OuterAttempt,
    original: Request,
) {
    /** As it is before Comeback had anything to do with it. */
    val original: Request = asNew(original)
    private val policy = orNull { setup.policyFor(this.original) }?.takeIf { it.driverFacts != null }
    private val facts = (policy ?: RetryPolicy.DEFAULT).driverFacts!!
    private val request = if (policy == null) this.original else withKey(this.original, facts, ::IdempotencyKeys)
    private val head = headOf(request, facts)

    /** The key that is this call's, which ends with it. */
    private val ownKey = request.tag(MadeKey::class.java).takeIf { request !== this.original }
    private val innerRequest = outer.request(policy, head, keyIsMade = request !== this.original)

    /** Another request, which is told by itself, goes in its place. */
    fun isReplaced(): Unit = innerRequest.ended(sentNothing = true)

    /** Nothing of it goes out before this. */
    @Throws(AttemptEndedException::class)
    fun goesOut(): Unit = innerRequest.goesOut()

    fun proceed(
        chain: Interceptor.Chain,
        layer: CallLayer,
        code: ClientCode,
    ): Response {
        goesOut()
        if (!layer.enter()) return chain.proceed(chain.request())
        try {
            layer.attemptBegins(outer)
            val mayResend = !outer.clientResendsOff && !facts.clientResendsOff && facts.mayRepeat(head)
            layer.resends = code.resends(mayResend || !chain.retryOnConnectionFailure, setup.hooks)
            val age = setup.connections.ageFor(request.url, path())
            innerRequest.whenOutOfTime = { setup.connections.areSuspect(age, request.url, layer.lastOut?.url ?: request.url) }
            val listener = layer.listener(chain.call()).also { it.attemptBegins() }
            try {
                val response = layer.asSent(layer.asOuter(chain.call(), isFound = true) { limited(chain, age).proceed(request) })
                innerRequest.whenOutOfTime = null
                val isError = response.code >= FIRST_ERROR
                ownKey?.ended(response)
                innerRequest.ended(sentNothing = false, retryAfter = if (isError) response.headers("Retry-After") else emptyList())
                return response
            } catch (caught: IOException) {
                val thrown = caught.asThrown()
                if (listener.isCancelledByTimer || failureKind(thrown, listener).isOfTime) innerRequest.isOutOfTime()
                ownKey?.ended(null)
                innerRequest.ended(
                    sentNothing =
                        !code.mayBeSentElsewhere(layer, setup.hooks) && orNull { listener.neverSent(causesOf(thrown)) } == true,
                )
                throw thrown
            }
        } finally {
            layer.leave()
        }
    }

    private fun path() =
        outer.path ?: setup.comeback
            .networkFor(facts, request.url.host)
            .snapshot.path

    private fun limited(
        chain: Interceptor.Chain,
        age: ConnectionAge?,
    ): Interceptor.Chain = setup.connections.limited(chain, age).limitedTo(outer.inactivityNanos, outer.connectNanos)
}

/** A Comeback further out on the same call acts, and sees the same request; but this one's policy may say something else about it. */
internal fun tellOnSameCall(
    chain: Interceptor.Chain,
    setup: Setup,
    layer: CallLayer,
    code: ClientCode,
): Response {
    val request = chain.request()
    val policy = setup.policyFor(request)
    val facts = policy.driverFacts ?: return chain.proceed(request)
    val innerRequest = layer.attempt().request(policy, headOf(request, facts), keyIsMade = false)
    innerRequest.goesOut()
    try {
        return chain.proceed(request)
    } catch (thrown: IOException) {
        val sentNothing = layer.listener?.mayHaveSent?.not() ?: (layer.lastOut == null)
        innerRequest.ended(sentNothing = sentNothing && !code.mayBeSentElsewhere(layer, setup.hooks))
        throw thrown
    }
}

/**
 * Notes on a call that it was made or started inside a block, because an enqueued call runs on another thread. Outside of every block this costs two look-ups
 * of a thread local.
 */
internal class BlockNoting(
    private val setup: Setup,
    val apps: EventListener.Factory,
) : EventListener.Factory {
    private val whereStarted = Note(setup, madeIn = null)

    override fun create(call: Call): EventListener {
        val listener = apps.create(call)
        val outer = OuterAttempt.onThisThread
        val note = if (outer == null) whereStarted else Note(setup, outer)
        return orNull { listener + note } ?: listener
    }

    private class Note(
        private val setup: Setup,
        private val madeIn: OuterAttempt?,
    ) : EventListener() {
        override fun callStart(call: Call) {
            orNull {
                val outer = OuterAttempt.onThisThread ?: madeIn ?: return
                CallLayer.of(call).innerCall = InnerCall(setup, outer, call.request())
            }
        }
    }
}

/**
 * A call that was enqueued inside a block ran on this thread, and now its callback does, whose calls are inside too. OkHttp says nothing of a callback's end,
 * but it names the calls that have not ended.
 */
internal class OnCallback(
    private val call: Call,
    private val outer: OuterAttempt,
) : AttemptSource {
    override fun attempt(): OuterAttempt? = outer.takeIf { isRunning() }

    private fun isRunning() =
        orNull {
            (call as? RealCall)
                ?.client
                ?.dispatcher
                ?.runningCalls()
                ?.any { it === call }
        } == true
}

/**
 * The app has put its own listener in the place of [BlockNoting], so nobody knows whether [call] was enqueued inside a block. It goes as if it were not; but
 * if its request must not be repeated, all blocks that are in progress now are told of it. Null: none is.
 */
internal fun tellBlocks(
    call: Call,
    request: Request,
    policy: RetryPolicy,
): List<InnerRequest>? {
    if (!Block.isAny || Attempt.of(call) != null || (call as? RealCall)?.client?.eventListenerFactory is BlockNoting) return null
    val actingPolicy = policy.takeIf { it.driverFacts != null }
    val facts = checkNotNull((actingPolicy ?: RetryPolicy.DEFAULT).driverFacts)
    val head = headOf(request, facts)
    return if (facts.mayRepeat(head)) null else Block.tellAll(actingPolicy, head)
}

internal fun headOf(
    request: Request,
    facts: DriverFacts,
): RequestHead = RequestHead.read(request.method, facts.keyHeader, request::headers)
