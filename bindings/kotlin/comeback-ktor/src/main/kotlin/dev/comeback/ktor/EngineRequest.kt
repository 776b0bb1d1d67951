// One request that has entered the engine, and what is known of it from there. Every "nothing was sent" rests on this.
package dev.comeback.ktor

import dev.comeback.driver.ConnectionAges
import dev.comeback.driver.LookUpMemory
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.Promise
import dev.comeback.driver.everythingBehind
import dev.comeback.driver.promise
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.utils.unwrapCancellationException
import java.lang.ref.ReferenceQueue
import java.lang.ref.WeakReference
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

/**
 * An attempt may make several requests: a redirect, a fresh token, another host. Only what is true of all of them is proof.
 *
 * @param request as it entered
 * @param outer the attempt it belongs to, as layers inside the engine see it
 * @param isHeard our own layer is in the engine and tells when a head is about to be written. Of other engines only the types of exceptions tell
 * @param mayResend whether the client may send it again by itself after it began to go out
 * @param onlyThisClientSends the app's word that its own code inside the engine sends nothing through another client
 * @property asksAgain a name was not found for the same call before
 * @param path the network's path on which it goes out
 * @param body null if nobody watches it
 * @property before what entered for the same attempt before it
 */
internal class EngineRequest(
    val request: HttpRequestBuilder,
    val outer: OuterAttempt,
    private val isHeard: Boolean,
    val mayResend: Boolean,
    val onlyThisClientSends: Boolean,
    val ages: ConnectionAges,
    val lookUps: LookUpMemory,
    val asksAgain: Boolean,
    val path: Long,
    private val body: BodyWatch?,
    val before: EngineRequest?,
) {
    private var number: String? = null

    /** A head went out, and the server is not known to have refused to look at it. */
    private var isOut = false

    /** It came to code of the app's that may send it through another client, which nobody here hears. Silence then proves nothing. */
    private var mayBeElsewhere = false

    /** No head goes out any more. */
    private var isClosed = false
    private var hasHead = false

    /** What the engine threw. */
    @Volatile
    var thrown: Throwable? = null
        private set

    /** Noted where the engine is known to share connections. */
    @Volatile
    var connections: Connections? = null

    /** For how long a failed look-up is remembered against the next attempt; null: as long as the platform does. */
    @Volatile
    var failedLookUpNanos: Long? = null

    /** In the engine, as far as is known. */
    val isUnderWay: Boolean get() = thrown == null && !hasHead

    /** The header's value by which [byNumber] finds it inside the engine. */
    fun numbered(): String =
        number ?: numbers.incrementAndGet().toString().also {
            number = it
            byNumber[it] = this
        }

    fun headCame() {
        hasHead = true
        number?.let(byNumber::remove)
    }

    /** The engine's coroutine is over. OkHttp's call may still wait for its turn, and not know yet that it was cancelled. */
    fun threw(thrown: Throwable) {
        this.thrown = thrown
        number?.let { byNumber.replace(it, this, Late(it, this)) }
        forgetLate()
    }

    /** Inside the engine: code of the app's is about to have it. False: it must not, because the attempt was ended meanwhile. */
    @Synchronized
    fun goesToForeignCode(): Boolean {
        if (!isClosed) mayBeElsewhere = true
        return !isClosed
    }

    /** Inside the engine: a head is about to be written. False: it must not be written, because the attempt was ended meanwhile. */
    @Synchronized
    fun goesOut(): Boolean {
        if (!isClosed) isOut = true
        return !isClosed
    }

    /** Inside the engine: the head that went out was refused before the server looked at it, and none had gone out before. */
    @Synchronized
    fun wasRefused() {
        isOut = false
    }

    @get:Synchronized
    val mayHaveGoneOut: Boolean get() = isOut

    /** Whether it is proved that no head was written. Then none will be. */
    @Synchronized
    fun sentNothing(): Boolean {
        if (hasHead || isOut || mayBeElsewhere) return false
        if (isHeard) {
            isClosed = true
            return true
        }
        val thrown = thrown?.unwrapCancellationException() ?: return false
        return body?.isAskedFor != true && failureKind(thrown).promise == Promise.NEVER_SENT
    }

    /** [ask] is asked whether to end the attempt, while nothing can go out: is it proved that no head was written? If it says so none will be. */
    @Synchronized
    fun <T> whileHeld(
        ask: (sentNothing: Boolean) -> T,
        ends: (T) -> Boolean,
    ): T {
        val sentNothing = isHeard && !hasHead && !isOut && !mayBeElsewhere
        val answer = ask(sentNothing)
        if (sentNothing && ends(answer)) isClosed = true
        return answer
    }

    /** Whether [failure] is what the engine threw for this, perhaps wrapped, or copied by a coroutine on its way. */
    fun endedWith(failure: Throwable): Boolean {
        val own = thrown ?: return false
        val original = own.cause?.takeIf { it.javaClass == own.javaClass } ?: own
        val behind = everythingBehind(failure)
        // Along causes: what is only suppressed is not why it failed.
        return behind[own] == false || behind[original] == false
    }

    companion object {
        private val numbers = AtomicLong()

        /** By number an [EngineRequest], or [Late]. */
        private val byNumber = ConcurrentHashMap<String, Any>()
        private val gone = ReferenceQueue<EngineRequest>()

        /** Null once nothing of it can come any more. */
        fun byNumber(number: String): EngineRequest? = byNumber[number].let { if (it is Late) it.get() else it as EngineRequest? }

        private fun forgetLate() {
            while (true) byNumber.remove((gone.poll() as Late? ?: return).number)
        }
    }

    /** Remembered for as long as anything refers to it. A call inside the engine does, by the attributes of its request. */
    private class Late(
        val number: String,
        request: EngineRequest,
    ) : WeakReference<EngineRequest>(request, gone)
}
