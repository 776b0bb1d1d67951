// What an attempt came back with, as its driver saw it.
package dev.comeback

/**
 * The outcome of one attempt: a response that may have to be retried, or a failure.
 *
 * @suppress
 */
@InternalComebackApi
public class Outcome private constructor(
    internal val status: Int,
    internal val failure: FailureKind?,
    internal val exception: Throwable?,
    internal val retryAfter: List<String>,
    internal val date: String?,
    internal val shouldRetry: String?,
    internal val lookUpNanos: Long,
    internal val bodyUntouched: Boolean,
    internal val overrule: OutcomeClass?,
) {
    public companion object {
        /**
         * A response.
         *
         * @param retryAfter the lines of its Retry-After headers, as they came
         * @param date its Date header
         * @param shouldRetry the value of the header that [DriverFacts.shouldRetryHeader] names
         * @param bodyUntouched whether it is known that nothing of the request's body was handed out
         * @param overrule what the app's own `classify` said
         */
        public fun response(
            status: Int,
            retryAfter: List<String> = emptyList(),
            date: String? = null,
            shouldRetry: String? = null,
            bodyUntouched: Boolean = false,
            overrule: OutcomeClass? = null,
        ): Outcome = Outcome(status, null, null, retryAfter, date, shouldRetry, 0, bodyUntouched, overrule)

        /**
         * A failure.
         *
         * @param exception what was thrown; an exception that ends the call later gets it as suppressed
         * @param lookUpNanos for [FailureKind.DNS]: how long the failed look-up stays cached below the driver
         * @param bodyUntouched whether it is known that nothing of the request's body was handed out
         * @param overrule what the app's own `classify` said
         */
        public fun failure(
            kind: FailureKind,
            exception: Throwable? = null,
            lookUpNanos: Long = 0,
            bodyUntouched: Boolean = false,
            overrule: OutcomeClass? = null,
        ): Outcome = Outcome(0, kind, exception, emptyList(), null, null, lookUpNanos, bodyUntouched, overrule)
    }
}
