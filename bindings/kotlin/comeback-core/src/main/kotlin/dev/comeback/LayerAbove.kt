// How one layer of Comeback learns that another, further out, has the call: the outermost acts, or attempts would multiply.
package dev.comeback

import java.util.UUID

/**
 * What a layer further out says to the one below it, where it can hand on nothing but a header: the layer below takes the header away, does what it
 * says to its client, and stands down.
 *
 * @property clientResendsOff the client must not send again by itself
 * @property connectNanos how long one route's connect may take, where the client's own limit is not shorter; null: the client's own
 * @property inactivityNanos the same for reads and writes
 * @property path the network's path on which the attempt goes out, [NetworkSnapshot.path]; null: any
 * @suppress
 */
@InternalComebackApi
public class LayerAbove(
    public val clientResendsOff: Boolean,
    public val connectNanos: Long?,
    public val inactivityNanos: Long?,
    public val path: Long? = null,
) {
    /** The header's value. */
    public fun encoded(): String = "$clientResendsOff/${connectNanos ?: ""}/${inactivityNanos ?: ""}/${path ?: ""}"

    public companion object {
        /** The header's name: another in each process, so that no caller can have sent it. */
        @JvmField
        public val header: String = "Comeback-Layer-" + UUID.randomUUID().toString().take(8)

        private const val NUMBERS = 3

        private val onThisThread = ThreadLocal<Boolean>()

        /** Whether a layer further out runs code on this thread just now. Whoever sets it restores what was before. */
        public var isOnThisThread: Boolean
            get() = onThisThread.get() == true
            set(value) = if (value) onThisThread.set(true) else onThisThread.remove()

        /** What [encoded] wrote. */
        public fun decode(value: String): LayerAbove {
            val parts = value.split('/')
            val numbers = List(NUMBERS) { parts.getOrNull(it + 1)?.toLongOrNull() }
            return LayerAbove(parts[0].toBoolean(), numbers[0], numbers[1], numbers[2])
        }
    }
}
