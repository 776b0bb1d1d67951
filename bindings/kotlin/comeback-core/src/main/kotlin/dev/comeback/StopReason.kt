// Why a call was not tried again.
package dev.comeback

/**
 * Why a call ended without a delivered answer. [toString] gives the name used in logs and vectors, for instance `attempts`. Other reasons may be
 * added: a `when` needs an `else`.
 */
public sealed class StopReason(
    private val text: String,
) {
    /** `max_attempts` were made. */
    public object Attempts : StopReason("attempts")

    /** No further attempt could start before the deadline. */
    public object Elapsed : StopReason("elapsed")

    /** The server asked for a longer wait than the deadline leaves. [ms] is what it asked for, in milliseconds; it may be very large. */
    public class ServerWaitTooLong(
        public val ms: Long,
    ) : StopReason("server_wait_too_long") {
        override fun equals(other: Any?): Boolean = other is ServerWaitTooLong && other.ms == ms

        override fun hashCode(): Int = ms.hashCode()

        override fun toString(): String = "server_wait_too_long($ms)"
    }

    /** The request may have reached the server, and repeating it might do its work twice. */
    public object NotRepeatable : StopReason("not_repeatable")

    /** The request's body cannot be sent a second time. */
    public object BodyNotReplayable : StopReason("body_not_replayable")

    /** The next attempt would fail alike. */
    public object Permanent : StopReason("permanent")

    /** There is no network, and the policy does not wait for one (any longer). */
    public object Offline : StopReason("offline")

    /** The retry budget of the origin is used up. */
    public object Budget : StopReason("budget")

    /** The circuit breaker of the origin lets no retry through. */
    public object Breaker : StopReason("breaker")

    /** Someone ended the call; [kind] says who. */
    public class Cancelled(
        public val kind: CancelKind,
    ) : StopReason("cancelled") {
        override fun equals(other: Any?): Boolean = other is Cancelled && other.kind == kind

        override fun hashCode(): Int = kind.hashCode()

        override fun toString(): String = "cancelled(${kind.name.lowercase()})"
    }

    /** Too many calls to this host wait already; this one would have taken the last slot. */
    public object TooManyWaiting : StopReason("too_many_waiting")

    /** Comeback itself failed: a fault in its library or in one of the app's hooks. The request was tried as without Comeback. */
    public object Internal : StopReason("internal")

    override fun toString(): String = text
}
