// Tells what runs inside retry { } that a layer further out has the call, and which attempt of it this is.
package dev.comeback.coroutines

import dev.comeback.InternalComebackApi
import dev.comeback.driver.OuterAttempt
import kotlinx.coroutines.ThreadContextElement
import kotlin.coroutines.AbstractCoroutineContextElement
import kotlin.coroutines.CoroutineContext

/**
 * In the context of a block of [retry]: layers further in stand down, and tell [outer]. Seen by what suspends, and by what blocks on the block's thread.
 *
 * @suppress
 */
@InternalComebackApi
public class LayerElement(
    public val outer: OuterAttempt,
) : AbstractCoroutineContextElement(Key),
    ThreadContextElement<OuterAttempt?> {
    override fun updateThreadContext(context: CoroutineContext): OuterAttempt? =
        OuterAttempt.onThisThread.also { OuterAttempt.onThisThread = outer }

    override fun restoreThreadContext(
        context: CoroutineContext,
        oldState: OuterAttempt?,
    ) {
        OuterAttempt.onThisThread = oldState
    }

    /** @suppress */
    @InternalComebackApi
    public companion object Key : CoroutineContext.Key<LayerElement> {
        /** The attempt of [retry] whose block [context] belongs to; null outside of one. */
        public fun of(context: CoroutineContext): OuterAttempt? = context[Key]?.outer
    }
}
