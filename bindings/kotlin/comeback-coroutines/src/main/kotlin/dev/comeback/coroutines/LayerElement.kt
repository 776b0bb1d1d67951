// Tells what runs inside retry { } that a layer further out has the call, and which attempt of it this is.
package dev.comeback.coroutines

import dev.comeback.InternalComebackApi
import dev.comeback.driver.AttemptSource
import dev.comeback.driver.OuterAttempt
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.ThreadContextElement
import kotlinx.coroutines.job
import kotlinx.coroutines.runBlocking
import kotlin.concurrent.thread
import kotlin.coroutines.AbstractCoroutineContextElement
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.intrinsics.COROUTINE_SUSPENDED
import kotlin.coroutines.intrinsics.suspendCoroutineUninterceptedOrReturn
import kotlin.coroutines.resume

/**
 * In the context of a block of [retry]: layers further in stand down, and tell [outer]. Seen by what suspends, by what blocks on the block's thread, and by
 * coroutines of a `runBlocking` that blocks it. The thread has the mark only while the block's own coroutines run on it.
 *
 * @param around the context in which the block was begun
 * @suppress
 */
@InternalComebackApi
public class LayerElement(
    public val outer: OuterAttempt,
    around: CoroutineContext,
) : AbstractCoroutineContextElement(Key),
    ThreadContextElement<AttemptSource?>,
    AttemptSource {
    init {
        outer.place = around
    }

    /**
     * What runs in it has come to the end, and what still does is outside. A thread may keep the mark for longer: what an unconfined coroutine does after the block
     * it may do inside the last step of the block's own coroutines.
     */
    @Volatile
    public var isOver: Boolean = false

    override fun attempt(): OuterAttempt? = outer.takeUnless { isOver }

    override fun updateThreadContext(context: CoroutineContext): AttemptSource? = OuterAttempt.enter(this)

    override fun restoreThreadContext(
        context: CoroutineContext,
        oldState: AttemptSource?,
    ): Unit = OuterAttempt.leave(oldState)

    /** @suppress */
    @InternalComebackApi
    public companion object Key : CoroutineContext.Key<LayerElement> {
        /**
         * The attempt that [context] belongs to: the block's of [retry], or that of a layer which a `runBlocking` blocks; null outside of one. Ask it in the
         * coroutine itself.
         */
        public fun of(context: CoroutineContext): OuterAttempt? =
            context[Key]?.outer ?: OuterAttempt.onThisThread?.takeIf { isBlockedFor(it, context) }
    }
}

/**
 * The block is over, and its caller goes on. A coroutine that needs no dispatch may do that inside the last step of the block's own code, on a thread that is still
 * told to be inside: until it suspends, it is not.
 */
internal suspend fun isOutside() {
    if (OuterAttempt.onThisThread == null) return
    suspendCoroutineUninterceptedOrReturn<Unit> { caller ->
        OuterAttempt.inside(null) { caller.resume(Unit) }
        COROUTINE_SUSPENDED
    }
}

/**
 * Whether [outer], whose code is on this thread, waits in `runBlocking` for the coroutine with [context]. Its code may also have resumed somebody else's
 * coroutine, one that needs no dispatch, which then runs on top of it. And a `runBlocking` lends its thread to all coroutines of the one around it: those, unlike
 * its own, have the same root as the block.
 */
private fun isBlockedFor(
    outer: OuterAttempt,
    context: CoroutineContext,
): Boolean {
    val job = context[Job] ?: return true
    val root = rootOf(job)
    if (root === (outer.place as? CoroutineContext)?.get(Job)?.let(::rootOf)) return false
    return root.javaClass == BLOCKING.job || context[ContinuationInterceptor]?.javaClass == BLOCKING.dispatcher
}

@OptIn(ExperimentalCoroutinesApi::class)
private fun rootOf(job: Job): Job {
    var root = job
    while (true) root = root.parent ?: return root
}

/** What `runBlocking` makes. Its types have no public names. */
private class BlockingTypes {
    @Volatile
    var job: Class<*>? = null
        private set

    @Volatile
    var dispatcher: Class<*>? = null
        private set

    init {
        // On a thread of its own: here it would run whatever waits for this thread.
        thread {
            runBlocking {
                job = coroutineContext.job.javaClass
                dispatcher = coroutineContext[ContinuationInterceptor]?.javaClass
            }
        }.join()
    }
}

private val BLOCKING by lazy(LazyThreadSafetyMode.PUBLICATION) { BlockingTypes() }
