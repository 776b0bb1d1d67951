// What a listener hears about calls.
package dev.comeback

import dev.comeback.driver.NANOS_PER_MILLI

/**
 * Something that happened to a call. Events of one call come in order, and every call that Comeback looked after ends with exactly one
 * [Finished]. No event holds a URL, a header or a body; [toString] is a line for a log. All lengths are nanoseconds. Other kinds may be added: a `when` needs an `else`.
 *
 * @property callId tells calls of one [Comeback] apart, from 1 in the order of their first events; 0 if the event is not about a call
 * @property label the app's own name for the request, if it gave one
 */
public sealed class RetryEvent {
    public abstract val callId: Long
    public abstract val label: String?

    /** How a log names the call: `call 1`, or `call 1 (orders)` with its label. */
    internal val call: String get() = if (label == null) "call $callId" else "call $callId ($label)"

    /**
     * An attempt failed. Either [status] or [failure] is set.
     *
     * @property outcome the class of the failure
     * @property status the HTTP status that came back
     * @property failure the kind of error it ended with
     * @property counted false if the attempt does not count towards `max_attempts`
     */
    @ConsistentCopyVisibility
    public data class AttemptFailed
        internal constructor(
            override val callId: Long,
            override val label: String?,
            public val outcome: OutcomeClass,
            public val status: Int?,
            public val failure: FailureKind?,
            public val counted: Boolean,
        ) : RetryEvent() {
            override fun toString(): String = "$call: ${failure?.name?.lowercase() ?: status}" + if (counted) "" else " (not counted)"
        }

    /** An attempt was abandoned for a new one, because the network it ran on is gone. */
    @ConsistentCopyVisibility
    public data class AttemptAbandoned
        internal constructor(
            override val callId: Long,
            override val label: String?,
        ) : RetryEvent() {
            override fun toString(): String = "$call: begun anew on another network"
        }

    /**
     * The call waits. Lengths count from the failure.
     *
     * @property plannedNanos when the wait will end if nothing ends it earlier
     * @property windowNanos the window the wait was drawn from; with decorrelated jitter the draw's upper bound
     * @property floorNanos nothing starts before this: the server asked for it, or the platform remembers a failed look-up; 0 without a floor
     * @property why what the call waits for
     */
    @ConsistentCopyVisibility
    public data class WaitPlanned
        internal constructor(
            override val callId: Long,
            override val label: String?,
            public val plannedNanos: Long,
            public val windowNanos: Long,
            public val floorNanos: Long,
            public val why: WaitReason,
        ) : RetryEvent() {
            override fun toString(): String = "$call: waits ${plannedNanos / NANOS_PER_MILLI} ms (${why.name.lowercase()})"
        }

    /**
     * The next attempt starts.
     *
     * @property plannedNanos what the latest [WaitPlanned] said
     * @property effectiveNanos how long the wait was, from the failure
     * @property by what ended the wait
     */
    @ConsistentCopyVisibility
    public data class Resumed
        internal constructor(
            override val callId: Long,
            override val label: String?,
            public val plannedNanos: Long,
            public val effectiveNanos: Long,
            public val by: WokenBy,
        ) : RetryEvent() {
            override fun toString(): String = "$call: goes again after ${effectiveNanos / NANOS_PER_MILLI} ms (${by.name.lowercase()})"
        }

    /**
     * The call is over; nothing follows.
     *
     * @property reason why it was not tried again; null if its answer was delivered
     * @property counted attempts that counted towards `max_attempts`
     * @property elapsedNanos since the driver was entered
     * @property mayHaveArrived see [RetryReport.mayHaveArrived]
     */
    @ConsistentCopyVisibility
    public data class Finished
        internal constructor(
            override val callId: Long,
            override val label: String?,
            public val reason: StopReason?,
            public val counted: Int,
            public val elapsedNanos: Long,
            public val mayHaveArrived: Boolean,
        ) : RetryEvent() {
            override fun toString(): String {
                val end = if (reason == null) "done" else "not tried again ($reason)"
                return "$call: $end after ${elapsedNanos / NANOS_PER_MILLI} ms, $counted counted"
            }
        }

    /**
     * A native library cannot be used on this device. Without the core's, requests go once, as without Comeback; without that of `comeback-client`, its
     * calls fail. So do requests of a client that an adapter cannot act on, an older OkHttp for instance: they go once. Heard at most once for each.
     *
     * @property file the library that was looked for, or the client's class
     * @property architecture of this device, as the JVM names it
     * @property cause what loading it threw, or what is missing
     */
    public class Unavailable internal constructor(
        public val file: String,
        public val architecture: String,
        public val cause: Throwable,
    ) : RetryEvent() {
        override val callId: Long get() = 0
        override val label: String? get() = null

        override fun toString(): String = "Comeback does not act: $file on $architecture cannot be used: $cause"
    }

    /**
     * The app has put a client together in a way that it hardly meant. Requests go all the same. Heard at most once for each [problem].
     *
     * @property problem what is there twice, and what to remove
     */
    public class SetupProblem internal constructor(
        public val problem: String,
    ) : RetryEvent() {
        override val callId: Long get() = 0
        override val label: String? get() = null

        override fun toString(): String = "Comeback: $problem"
    }
}
