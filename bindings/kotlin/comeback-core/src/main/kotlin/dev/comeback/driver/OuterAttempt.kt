// One layer acts, the outermost. This is its attempt, as the layers further in see it: they stand down and tell it of every request they make.
package dev.comeback.driver

import dev.comeback.AttemptEndedException
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import dev.comeback.RetryPolicy
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

/**
 * An attempt of the acting layer. Without it attempts would multiply (16 requests instead of 4); without the reports of the layers further in, the outer
 * layer would repeat what it must not. A layer further in finds it
 *
 * - on the thread ([onThisThread]) or in the coroutine's context, inside a block of `retry { }`,
 * - as a tag of this type on a request or call,
 * - by a header ([header]), where an engine in between hands on nothing else; the layer takes the header away.
 *
 * Thread-safe. What of it goes on after it failed, because it ignores its cancellation for instance, can make no request any more that must not be repeated:
 * the next attempt may make it too. See [sealing].
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
) : AttemptSource {
    /** Made at the first need: most attempts have no layer further in. */
    private var requests: ArrayList<InnerRequest>? = null

    /** What the acting layer knows its attempt by, a coroutine's context for instance; null: nothing. */
    @Volatile
    public var place: Any? = null

    /** The keys that layers further in made in this attempt. */
    private var madeKeys: HashSet<String>? = null

    /** What the acting layer goes by, once the attempt is sealed. */
    @Volatile
    private var sealedBy: DriverFacts? = null

    /** Whether the attempt has failed, and another one may follow: see [sealing]. */
    public val isSealed: Boolean get() = sealedBy != null

    /** All that layers further in have reported so far. */
    public val innerRequests: List<InnerRequest>
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
        return noted(policy, if (keyIsMade || hasMadeKey(head)) head.withoutKey() else head)
    }

    /**
     * [ask]s the core what follows from all that was noted. If its answer [seals] the attempt, each later request is refused that a layer with these [facts] must
     * not repeat: it was not taken into account, and the next attempt may make it too. A request that comes meanwhile waits for the answer.
     */
    @Synchronized
    internal fun <T> sealing(
        facts: DriverFacts,
        ask: (List<InnerRequest>) -> T,
        seals: (T) -> Boolean,
    ): T = ask(innerRequests).also { if (seals(it)) sealedBy = facts }

    /** The attempt goes on after all. */
    @Synchronized
    public fun unseal() {
        sealedBy = null
    }

    /** A layer further in has made a key, whose header has these [lines], and tells of its request later. */
    @Synchronized
    public fun keyIsMade(lines: List<String>) {
        madeKeys = (madeKeys ?: HashSet(1)).apply { addAll(lines) }
    }

    /** Time has ended the attempt, and with it the requests that were waiting for an answer. */
    public fun isOutOfTime(): Unit = innerRequests.forEach { it.isOutOfTime() }

    @Synchronized
    private fun hasMadeKey(head: RequestHead) = madeKeys?.let { made -> head.key.any { it in made } } == true

    @Synchronized
    private fun noted(
        policy: RetryPolicy?,
        head: RequestHead,
    ): InnerRequest {
        val sealedBy = sealedBy ?: return InnerRequest(policy, head).also { requests = (requests ?: ArrayList(1)).apply { add(it) } }
        return InnerRequest(policy, head, isRefused = !sealedBy.mayRepeatInside(policy, head))
    }

    /** @suppress */
    @InternalComebackApi
    public companion object {
        /** The header's name. It differs in each process, so no caller can have sent it. */
        @JvmField
        public val header: String = "Comeback-Layer-" + UUID.randomUUID().toString().take(8)

        /** Where layers further in find the attempt. */
        @PublishedApi
        internal val here: OnThread<AttemptSource> = OnThread()

        /** The attempt whose code runs on this thread now. */
        public val onThisThread: OuterAttempt?
            get() {
                val attempt = (here.value ?: return null).attempt()
                // It is over, and to ask it may cost something.
                if (attempt == null) here.slot().value = null
                return attempt
            }

        /** Runs [action], during which [onThisThread] is what [source] answers; null: there is none. */
        public inline fun <T> inside(
            source: AttemptSource?,
            action: () -> T,
        ): T = here.during(source, action)

        /** From now on [onThisThread] is what [source] answers; null: there is none. Returns what was there before, for [leave]. */
        public fun enter(source: AttemptSource?): AttemptSource? {
            val slot = here.slot()
            val before = slot.value
            slot.value = source
            return before
        }

        /** Undoes [enter], which returned [before]. */
        public fun leave(before: AttemptSource?) {
            here.slot().value = before
        }

        /** Where no attempt's code runs on this thread, [source] answers from now on. Nobody undoes it, so it must know by itself when that is over. */
        public fun stays(source: AttemptSource) {
            if (onThisThread == null) here.slot().value = source
        }
    }

    override fun attempt(): OuterAttempt = this
}

/**
 * Where a layer further in finds an attempt. It may be made only then: in most attempts nobody looks.
 *
 * @suppress
 */
@InternalComebackApi
public interface AttemptSource {
    /** The same one until the attempt ends; null once its code does not run there any more. */
    public fun attempt(): OuterAttempt?
}

/**
 * A block of `retry { }`, all of its attempts. A layer that cannot know whether a request of its own is made inside one, though it may well be, tells every
 * block in progress of it, if it must not be repeated.
 *
 * @suppress
 */
@InternalComebackApi
public class Block : AutoCloseable {
    /** What was told so far, and whose request may be this block's. It stays with all further attempts. */
    private val perhaps = OuterAttempt()

    public val innerRequests: List<InnerRequest> get() = perhaps.innerRequests

    /** Whether one of them may have gone out that a layer with these [facts] does not repeat. */
    public fun forbidsRepetition(facts: DriverFacts): Boolean = innerRequests.any { !it.sentNothing && !facts.mayRepeat(it.head) }

    init {
        inProgress += this
    }

    override fun close() {
        inProgress -= this
    }

    /** @suppress */
    @InternalComebackApi
    public companion object {
        private val inProgress: MutableSet<Block> = ConcurrentHashMap.newKeySet()

        /** Whether there is one anywhere in this process. */
        public val isAny: Boolean get() = !inProgress.isEmpty()

        /** Tells each of them of a request, as [OuterAttempt.request] does. What becomes of it is told to the returned ones. */
        public fun tellAll(
            policy: RetryPolicy?,
            head: RequestHead,
        ): List<InnerRequest> = inProgress.map { it.perhaps.request(policy, head, keyIsMade = false) }
    }
}

/**
 * A request that a layer further in made. Unless [ended] says otherwise, it may have gone out.
 *
 * @property isRefused its attempt is over, and the next one may make it too: see [goesOut]
 * @suppress
 */
@InternalComebackApi
public class InnerRequest internal constructor(
    internal val policy: RetryPolicy?,
    internal val head: RequestHead,
    private val isRefused: Boolean = false,
) {
    /** Whether it is proved that it wrote no head. */
    @Volatile
    public var sentNothing: Boolean = isRefused
        private set

    /**
     * Nothing of it goes out before this.
     *
     * @throws AttemptEndedException if it must not, because it came too late
     */
    @Throws(AttemptEndedException::class)
    public fun goesOut() {
        if (isRefused) throw AttemptEndedException()
    }

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
