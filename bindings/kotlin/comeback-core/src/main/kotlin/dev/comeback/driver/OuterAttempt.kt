// One layer acts, the outermost. This is its attempt, as the layers further in see it: they stand down and tell it of every request they make.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import dev.comeback.RetryPolicy
import java.util.UUID

/**
 * An attempt of the acting layer. Without it attempts would multiply (16 requests instead of 4); without the reports of the layers further in, the outer
 * layer would repeat what it must not. A layer further in finds it
 *
 * - on the thread ([onThisThread]) or in the coroutine's context, inside a block of `retry { }`,
 * - as a tag of this type on a request or call,
 * - by a header ([header]), where an engine in between hands on nothing else; the layer takes the header away.
 *
 * Thread-safe. Reports that come after the attempt ended are not used any more, but a request that was noted before stays noted.
 *
 * @property clientResendsOff the client must not send again by itself
 * @property connectNanos how long one route's connect may take, where the client's own limit is not shorter; null: the client's own
 * @property inactivityNanos the same for reads and writes
 * @property path the network's path on which the attempt goes out, [NetworkSnapshot.path]; null: any
 * @suppress
 */
@InternalComebackApi
public class OuterAttempt(
    public val clientResendsOff: Boolean = false,
    public val connectNanos: Long? = null,
    public val inactivityNanos: Long? = null,
    public val path: Long? = null,
) {
    /** Made at the first need: most attempts have no layer further in. */
    private var requests: ArrayList<InnerRequest>? = null

    /** The keys that layers further in made in this attempt. */
    private var madeKeys: HashSet<String>? = null

    /** All that was noted so far. */
    public val told: List<InnerRequest>
        @Synchronized
        get() = requests?.toList().orEmpty()

    /**
     * A layer further in makes a request. It says so before anything of it goes out, and later, by [InnerRequest.ended], what became of it.
     *
     * @param policy the policy that the layer would act by; null, or one that is off: the rules without one
     * @param keyIsMade whether the layer made the request's key: then the next attempt's request has another. A layer further in than that one finds the key
     * on the request; this attempt remembers whose it is.
     */
    public fun request(
        policy: RetryPolicy?,
        head: RequestHead,
        keyIsMade: Boolean,
    ): InnerRequest {
        if (keyIsMade) keyIsMade(head.key)
        return InnerRequest(policy, if (keyIsMade || hasMadeKey(head)) head.withoutKey() else head).also(::note)
    }

    /** A layer further in has made a key, whose header has these [lines], and tells of its request later. */
    @Synchronized
    public fun keyIsMade(lines: List<String>) {
        madeKeys = (madeKeys ?: HashSet(1)).apply { addAll(lines) }
    }

    /** Time has ended the attempt, and with it the requests that were waiting for an answer. */
    public fun isOutOfTime(): Unit = told.forEach { it.isOutOfTime() }

    @Synchronized
    private fun hasMadeKey(head: RequestHead) = madeKeys?.let { made -> head.key.any { it in made } } == true

    @Synchronized
    private fun note(request: InnerRequest) {
        requests = (requests ?: ArrayList(1)).apply { add(request) }
    }

    public companion object {
        /** The header's name. It differs in each process, so no caller can have sent it. */
        @JvmField
        public val header: String = "Comeback-Layer-" + UUID.randomUUID().toString().take(8)

        /** An [OuterAttempt], or a [Source] of one. */
        private val here = ThreadLocal<Any?>()

        /** The attempt whose code runs on this thread now. Code that sets it must restore the former value. */
        public var onThisThread: OuterAttempt?
            get() = here.get()?.let { it as? OuterAttempt ?: (it as Source).attempt() }
            // An entry that is removed would be made anew by the next look.
            set(value) = here.set(value)

        /** From now on [onThisThread] is what [source] answers. Returns what was there before, for [leave]. */
        public fun enter(source: Source): Any? = here.get().also { here.set(source) }

        /** Undoes [enter], which returned [before]. */
        public fun leave(before: Any?): Unit = here.set(before)
    }

    /**
     * Makes an attempt when a layer further in looks for it. In most attempts none does.
     *
     * @suppress
     */
    @InternalComebackApi
    public interface Source {
        /** The same one until the attempt ends. */
        public fun attempt(): OuterAttempt
    }
}

/**
 * A request that a layer further in made. Unless [ended] says otherwise, it may have gone out.
 *
 * @suppress
 */
@InternalComebackApi
public class InnerRequest internal constructor(
    internal val policy: RetryPolicy?,
    internal val head: RequestHead,
) {
    /** Whether it is proved that it wrote no head. */
    @Volatile
    public var sentNothing: Boolean = false
        private set

    /** The lines of its answer's Retry-After headers. */
    @Volatile
    public var retryAfter: List<String> = emptyList()
        private set

    /** Called if time ends the attempt while this is set: the connection that the request is on may be dead. */
    @Volatile
    public var whenOutOfTime: (() -> Unit)? = null

    /** Time has ended it. */
    public fun isOutOfTime() {
        orNull { whenOutOfTime?.invoke() }
    }

    /** It came to an end. */
    public fun ended(
        sentNothing: Boolean,
        retryAfter: List<String> = emptyList(),
    ) {
        this.retryAfter = retryAfter
        this.sentNothing = sentNothing
    }
}
