// What Comeback keeps for one OkHttp call, and the mark by which a second Comeback on the same call stands down.
package dev.comeback.okhttp

import okhttp3.Call
import java.util.concurrent.atomic.AtomicBoolean

/**
 * A tag on the call. An interceptor outside Comeback may send several requests through it, one after the other; each is looked after, and they share
 * the one witness.
 */
internal class CallLayer {
    private val active = AtomicBoolean()

    val keys = IdempotencyKeys()

    private var witness: AttemptWitness? = null

    /** The policy in force forbids the client to send a request again by itself. */
    @Volatile
    var clientMustNotResend: Boolean = false

    /** Whether Comeback is at work on the call just now. */
    val isActive: Boolean get() = active.get()

    /** False if a Comeback further out has the call. */
    fun enter(): Boolean = active.compareAndSet(false, true)

    fun leave() = active.set(false)

    /** The witness that hears [call], added at the first need. */
    fun witness(
        call: Call,
        pools: FreshPools,
    ): AttemptWitness =
        witness ?: AttemptWitness(onReleased = pools::sweep).also {
            witness = it
            call.addEventListener(it)
        }
}
