// What Comeback keeps for one OkHttp call, and the mark by which a second Comeback on the same call stands down.
package dev.comeback.okhttp

import okhttp3.Call
import okhttp3.Response
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater

/**
 * A tag on the call. An interceptor outside Comeback may send several requests through it, one after the other; each is looked after, and they share
 * the one witness.
 */
internal class CallLayer {
    @Volatile
    private var state = IDLE

    private var madeKeys: IdempotencyKeys? = null

    val keys: IdempotencyKeys
        get() = madeKeys ?: IdempotencyKeys().also { madeKeys = it }

    private var witness: AttemptWitness? = null

    /** What was changed in the head of the call's latest response, and is to be undone. */
    var edit: RetryAfterEdit? = null

    /** What was written of the request's body; null if it has none that can be written again. */
    var replay: Replay? = null

    /** Whether Comeback is at work on the call just now. */
    val isActive: Boolean get() = state == ACTIVE

    /** False if a Comeback further out has the call. */
    fun enter(): Boolean = STATE.compareAndSet(this, IDLE, ACTIVE)

    /** [response] as it would be had Comeback not kept the client from following it up. */
    fun asSent(response: Response): Response = edit?.undone(response) ?: response

    fun leave() = STATE.lazySet(this, IDLE)

    /** The witness that hears [call], added at the first need. */
    fun witness(
        call: Call,
        pools: FreshPools,
    ): AttemptWitness =
        witness ?: AttemptWitness(onReleased = pools::sweep).also {
            witness = it
            call.addEventListener(it)
        }

    companion object {
        private const val IDLE = 0
        private const val ACTIVE = 1

        private val STATE = AtomicIntegerFieldUpdater.newUpdater(CallLayer::class.java, "state")

        /** Made once: each `::class` is an object. */
        private val TYPE = CallLayer::class

        fun of(call: Call): CallLayer = call.tag(TYPE) { CallLayer() }

        /** Null if no Comeback has seen [call]. */
        fun find(call: Call): CallLayer? = call.tag(TYPE)
    }
}
