// What Comeback keeps for one OkHttp call, and the mark by which a second Comeback on the same call stands down.
package dev.comeback.okhttp.internal

import dev.comeback.driver.AttemptSource
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.okhttp.RetryAfterEdit
import okhttp3.Call
import okhttp3.Dns
import okhttp3.Request
import okhttp3.Response
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater

/**
 * A tag on the call. An interceptor outside Comeback may send several requests through it, one after the other; each is looked after, and they share
 * the one listener. All of it belongs to the thread that runs the call, unless it says otherwise.
 */
internal class CallLayer : AttemptSource {
    @Volatile
    private var state = IDLE

    /** The request that left last in this attempt, or was about to; null: none. */
    var lastOut: Request? = null
        private set

    /** What most calls never need: a call that succeeds at once stays small. */
    private class Rare {
        var keys: IdempotencyKeys? = null
        var listener: AttemptListener? = null
        var edit: RetryAfterEdit? = null
        var replay: Replay? = null

        @Volatile
        var innerCall: InnerCall? = null
        var earlierOut: List<Request> = emptyList()

        @Volatile
        var attempt: OuterAttempt? = null
        var lookUpAgain: Dns? = null
        var notFound: String? = null
        var resends = Resends.ANY
    }

    @Volatile
    private var rare: Rare? = null

    /** Once: an attempt that was left alone may ask for it while another thread settles the attempt. */
    private fun rare(): Rare = rare ?: synchronized(this) { rare ?: Rare().also { rare = it } }

    val keys: IdempotencyKeys
        get() = rare().run { keys ?: IdempotencyKeys().also { keys = it } }

    /** The one that hears the call, if there is one yet. */
    val listener: AttemptListener? get() = rare?.listener

    /** What was changed in the head of the call's latest response, and is to be undone. */
    var edit: RetryAfterEdit?
        get() = rare?.edit
        set(value) {
            if (value != null || rare != null) rare().edit = value
        }

    /** What was written of the request's body; null if it has none that can be written again. */
    var replay: Replay?
        get() = rare?.replay
        set(value) {
            if (value != null || rare != null) rare().replay = value
        }

    /** The call was made inside an attempt of a layer further out. */
    var innerCall: InnerCall?
        get() = rare?.innerCall
        set(value) {
            if (value != null || rare != null) rare().innerCall = value
        }

    /** Looks up names in the place of [Dns.SYSTEM]; null: nobody does. */
    var lookUpAgain: Dns?
        get() = rare?.lookUpAgain
        set(value) {
            rare().lookUpAgain = value
        }

    /** The name that this attempt did not find. */
    var notFound: String?
        get() = rare?.notFound
        set(value) {
            rare().notFound = value
        }

    /** What OkHttp may send again by itself in this attempt. */
    var resends: Resends
        get() = rare?.resends ?: Resends.ANY
        set(value) {
            if (value != Resends.ANY || rare != null) rare().resends = value
        }

    /** Those that left before [lastOut] in this attempt, redirects for instance. */
    val earlierOut: List<Request> get() = rare?.earlierOut.orEmpty()

    /** Whether Comeback is at work on the call just now. */
    val isActive: Boolean get() = state == ACTIVE

    /** False if a Comeback further out has the call. */
    fun enter(): Boolean {
        if (!STATE.compareAndSet(this, IDLE, ACTIVE)) return false
        replay = null
        attemptBegins(null)
        return true
    }

    fun leave() = STATE.lazySet(this, IDLE)

    /** [outer]: the attempt further out that this one is a part of; null: this layer acts. */
    fun attemptBegins(outer: OuterAttempt?) {
        lastOut = null
        if (outer == null && rare == null) return
        rare().apply {
            edit = null
            earlierOut = emptyList()
            attempt = outer
            lookUpAgain = null
            notFound = null
            resends = Resends.ANY
        }
    }

    /** The attempt as layers further in see it. Any thread may ask: one that was left alone does, and one that settles the attempt meanwhile. */
    @Synchronized
    override fun attempt(): OuterAttempt = rare().run { attempt ?: OuterAttempt().also { attempt = it } }

    /** [request] is about to leave. */
    fun goesOut(request: Request) {
        lastOut?.let { before -> rare().apply { earlierOut = earlierOut + before } }
        lastOut = request
    }

    /** [response] as it would be had Comeback not kept the client from following it up. */
    fun asSent(response: Response): Response = edit?.undone(response) ?: response

    /** The listener that hears [call], added at the first need. */
    fun listener(call: Call): AttemptListener =
        listener ?: AttemptListener().also {
            rare().listener = it
            call.addEventListener(it)
        }

    /** Runs [action], an attempt of [call], in which layers further in find this attempt; if [isFound] is false there is nobody to find it. */
    inline fun <T> asOuter(
        call: Call,
        isFound: Boolean,
        action: () -> T,
    ): T = AttemptDns.inside(call) { if (isFound) OuterAttempt.inside(this, action) else action() }

    companion object {
        private const val IDLE = 0
        private const val ACTIVE = 1

        private val STATE = AtomicIntegerFieldUpdater.newUpdater(CallLayer::class.java, "state")

        /** Made once: each `::class` is an object. */
        val TYPE = CallLayer::class

        fun of(call: Call): CallLayer = call.tag(TYPE) { CallLayer() }

        /** Null if no Comeback has seen [call], or OkHttp is too old for one. */
        fun find(call: Call): CallLayer? =
            try {
                call.tag(TYPE)
            } catch (_: LinkageError) {
                null
            }
    }
}
