// What is known about the network at one instant: one immutable value.
package dev.comeback

/** Whether there is a network. */
public enum class NetworkState {
    /** Nothing is known. This counts as online; only timers end waits. */
    UNKNOWN,

    /** There is no network. */
    OFFLINE,

    /** There is a network, but it carries nothing for this app: it is blocked, or suspended, as in a tunnel. */
    BLOCKED,

    /** There is a usable network. */
    ONLINE,
}

/**
 * What is known about the network.
 *
 * @property state whether there is a network, and whether it can be used
 * @property since when the state began, in nanoseconds of the clock in use; [Long.MIN_VALUE] if that was long ago
 * @property epoch counts the moments at which the network came back (or another took over); it only grows
 * @property path counts only those of these moments after which old connections are dead; it only grows
 */
public class NetworkSnapshot(
    public val state: NetworkState,
    public val since: Long,
    public val epoch: Long,
    public val path: Long,
) {
    override fun equals(other: Any?): Boolean =
        other is NetworkSnapshot && other.state == state && other.since == since && other.epoch == epoch && other.path == path

    override fun hashCode(): Int = since.hashCode() * 31 + epoch.hashCode()

    override fun toString(): String = "$state since $since, epoch $epoch, path $path"

    public companion object {
        /** Before anything is known. */
        @JvmField
        public val UNKNOWN: NetworkSnapshot = NetworkSnapshot(NetworkState.UNKNOWN, Long.MIN_VALUE, 0, 0)
    }
}
