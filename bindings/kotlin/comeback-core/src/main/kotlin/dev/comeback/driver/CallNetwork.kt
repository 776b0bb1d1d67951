// The network as one call knows it.
package dev.comeback.driver

import dev.comeback.Comeback
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import dev.comeback.Subscription

/**
 * What an adapter asks in the place of its [Comeback]: the network's newest snapshot, or, for a call that the network does not concern, one of which
 * nothing is ever known. Got from [Comeback.networkFor], handed to [CallSession], and used for all else that a snapshot decides: paths, pools, look-ups.
 *
 * @suppress
 */
@InternalComebackApi
public class CallNetwork internal constructor(
    private val comeback: Comeback,
    private val isKnown: Boolean,
) {
    /** The newest snapshot. */
    public val snapshot: NetworkSnapshot get() = if (isKnown) comeback.snapshot else NetworkSnapshot.UNKNOWN

    /** Calls [onChange] after each change of the network. Null: none concerns this call. */
    public fun subscribe(onChange: () -> Unit): Subscription? = if (isKnown) comeback.subscribe(onChange) else null
}
