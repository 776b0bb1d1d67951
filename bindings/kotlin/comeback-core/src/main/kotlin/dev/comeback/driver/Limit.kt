// What one attempt may take.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/**
 * What one attempt may take from its start, in nanoseconds.
 *
 * @property hardNanos until its response head, whatever moves; null: no limit
 * @property inactivityNanos for connect, read and write each, unless the client's own limit is shorter; null: the client's own
 * @suppress
 */
@InternalComebackApi
@ConsistentCopyVisibility
public data class Limit internal constructor(
    public val hardNanos: Long?,
    public val inactivityNanos: Long?,
) {
    public companion object {
        /** No limit but the client's own. */
        @JvmField
        public val NONE: Limit = Limit(null, null)

        internal fun of(
            hardNanos: Long?,
            inactivityNanos: Long?,
        ): Limit = if (hardNanos == null && inactivityNanos == null) NONE else Limit(hardNanos, inactivityNanos)
    }
}
