// Tells what runs inside retry { } that a layer further out has the call.
package dev.comeback.coroutines

import dev.comeback.InternalComebackApi
import dev.comeback.LayerAbove
import kotlinx.coroutines.ThreadContextElement
import kotlin.coroutines.AbstractCoroutineContextElement
import kotlin.coroutines.CoroutineContext

/**
 * In the context of a block of [retry]: layers further in stand down. Seen by what suspends, and by what blocks on the block's thread.
 *
 * @suppress
 */
@InternalComebackApi
public object LayerElement : AbstractCoroutineContextElement(Key), ThreadContextElement<Boolean> {
    private object Key : CoroutineContext.Key<LayerElement>

    /** Whether [context] is that of a block of [retry]. */
    public fun isIn(context: CoroutineContext): Boolean = context[Key] != null

    override fun updateThreadContext(context: CoroutineContext): Boolean =
        LayerAbove.isOnThisThread.also { LayerAbove.isOnThisThread = true }

    override fun restoreThreadContext(
        context: CoroutineContext,
        oldState: Boolean,
    ) {
        LayerAbove.isOnThisThread = oldState
    }
}
