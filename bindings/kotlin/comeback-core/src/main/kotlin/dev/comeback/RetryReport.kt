// What was tried, told after the fact: a fold of one call's events.
package dev.comeback

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
 * What became of a call.
 *
 * @property reason why it was not tried again; null if its answer was delivered, or if it is not over
 * @property attempts those that failed, in order
 * @property abandoned attempts that were given up for fresh ones
 * @property counted attempts that counted towards `max_attempts`, the last one included; 0 if the call is not over
 * @property elapsedNanos how long the call took; 0 if it is not over
 */
public class RetryReport private constructor(
    public val reason: StopReason?,
    public val attempts: List<AttemptReport>,
    public val abandoned: Int,
    public val counted: Int,
    public val elapsedNanos: Long,
) {
    override fun toString(): String =
        "${reason ?: "done"}: $counted counted in ${elapsedNanos / 1_000_000} ms, failed ${attempts.joinToString(", ", "[", "]")}" +
            if (abandoned > 0) ", abandoned $abandoned" else ""

    public companion object {
        /** Folds the events of one call, in their order. */
        @JvmStatic
        public fun of(events: List<RetryEvent>): RetryReport {
            val attempts = ArrayList<AttemptReport>()
            var abandoned = 0
            var finished: RetryEvent.Finished? = null
            for (event in events) {
                when (event) {
                    is RetryEvent.AttemptFailed -> {
                        attempts += AttemptReport(event)
                    }

                    is RetryEvent.WaitPlanned -> {
                        attempts.last().waits += event
                    }

                    is RetryEvent.Resumed -> {
                        attempts.last().resumed = event
                    }

                    is RetryEvent.AttemptAbandoned -> {
                        abandoned++
                    }

                    is RetryEvent.Finished -> {
                        finished = event
                    }

                    is RetryEvent.Unavailable -> {}
                }
            }
            return RetryReport(finished?.reason, attempts, abandoned, finished?.counted ?: 0, finished?.elapsedNanos ?: 0)
        }
    }
}
