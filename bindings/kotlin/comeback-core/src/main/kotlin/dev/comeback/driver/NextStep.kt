// What a driver has to do next.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import dev.comeback.StopReason

/**
 * What a driver has to do next.
 *
 * @suppress
 */
@InternalComebackApi
public sealed class NextStep {
    /** The outcome is the answer: return it. The call is over. */
    public object Deliver : NextStep()

    /** No further attempt. The call is over. */
    public class Stop internal constructor(
        public val reason: StopReason,
    ) : NextStep()

    /**
     * Wait, then ask [CallSession.woken]: at [askAt] (an instant of [Time.nanos]), or when [CallNetwork.snapshot] is news, or at any earlier moment. [CallSession.await] does that for a thread that may block.
     */
    public class Sleep internal constructor(
        public val askAt: Long,
        private val seen: NetworkSnapshot,
    ) : NextStep() {
        /** Whether [network] may end the wait: there was an edge, or the loss is older than it was thought to be. */
        internal fun isNews(network: NetworkSnapshot): Boolean = network.epoch != seen.epoch || network.since < seen.since
    }

    /** Make the next attempt now, within [limit]. */
    public class Go internal constructor(
        public val limit: Limit,
    ) : NextStep()

    /** Leave the attempt alone. Ask [CallSession.interrupted] again at [askAt] if there is one, else when the network comes back again. */
    public class Keep internal constructor(
        public val askAt: Long?,
    ) : NextStep()

    /** Give the attempt up and begin it anew at once, within [limit]. */
    public class Restart internal constructor(
        public val limit: Limit,
    ) : NextStep()
}
