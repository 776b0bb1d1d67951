// What was tried in one call, made from its events.
package dev.comeback

import dev.comeback.driver.NANOS_PER_MILLI

/**
 * One attempt that failed.
 *
 * @property waits what was planned after it: its wait, and the park that wait may have turned into
 * @property resumed how the wait ended; null if no attempt followed
 */
public class AttemptReport internal constructor(
    private val failed: RetryEvent.AttemptFailed,
) {
    public var waits: List<RetryEvent.WaitPlanned> = emptyList()
        internal set

    public var resumed: RetryEvent.Resumed? = null
        internal set

    /** The class of the failure. */
    public val outcome: OutcomeClass get() = failed.outcome

    /** The HTTP status it came back with, if any. */
    public val status: Int? get() = failed.status

    /** The kind of error it ended with, if it got no response. */
    public val failure: FailureKind? get() = failed.failure

    /** Whether it counted towards `max_attempts`. */
    public val counted: Boolean get() = failed.counted

    override fun toString(): String = failure?.name?.lowercase() ?: status.toString()
}

/**
 * What was tried in one call, and how it ended.
 *
 * @property attempts those that failed, in order
 * @property abandoned attempts that were given up for fresh ones
 * @property finished how the call ended; null while it goes on
 */
public class RetryReport private constructor(
    public val attempts: List<AttemptReport>,
    public val abandoned: Int,
    public val finished: RetryEvent.Finished?,
) {
    /** Why the call was not tried again; null if its answer was delivered, or while it goes on. */
    public val reason: StopReason? get() = finished?.reason

    /** Attempts that counted towards `max_attempts`, the last one included; 0 while the call goes on. */
    public val counted: Int get() = finished?.counted ?: 0

    /** How long the call took, in nanoseconds; 0 while it goes on. */
    public val elapsedNanos: Long get() = finished?.elapsedNanos ?: 0

    /**
     * Whether any attempt may have reached the server. False only if it is proved for every attempt that it sent nothing, or that its stream was refused;
     * then the app may send the request again by other means. True if nobody knows, and while the call goes on.
     */
    public val mayHaveArrived: Boolean get() = finished?.mayHaveArrived ?: true

    override fun toString(): String {
        val end = if (finished == null) "goes on" else "${reason ?: "done"} after ${elapsedNanos / NANOS_PER_MILLI} ms, $counted counted"
        return "$end; failed $attempts" + if (abandoned > 0) ", abandoned $abandoned" else ""
    }

    public companion object {
        /** Makes the report of one call from its events, in their order. Events that cannot come there, such as any after the end, are ignored. */
        @JvmStatic
        public fun of(events: List<RetryEvent>): RetryReport {
            val attempts = ArrayList<AttemptReport>()
            var abandoned = 0
            for (event in events) {
                when (event) {
                    is RetryEvent.AttemptFailed -> attempts += AttemptReport(event)
                    is RetryEvent.WaitPlanned -> attempts.lastOrNull()?.apply { waits += event }
                    is RetryEvent.Resumed -> attempts.lastOrNull()?.apply { resumed = event }
                    is RetryEvent.AttemptAbandoned -> abandoned++
                    is RetryEvent.Finished -> return RetryReport(attempts, abandoned, event)
                    is RetryEvent.Unavailable, is RetryEvent.SetupProblem -> Unit
                }
            }
            return RetryReport(attempts, abandoned, null)
        }
    }
}
