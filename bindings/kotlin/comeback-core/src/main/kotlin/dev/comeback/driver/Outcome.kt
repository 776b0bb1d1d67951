// What an attempt came back with, as its driver saw it.
package dev.comeback.driver

import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.OutcomeClass

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
    internal val sentNothing: Boolean,
    internal val bodyUntouched: Boolean,
    internal val overrule: OutcomeClass?,
    internal val wentOut: RequestHead?,
    internal val inner: List<InnerRequest>,
    internal val bodySpent: Boolean,
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
         * @param wentOut the request as it left, where the driver saw it; null: as it came in
         * @param inner what layers further in told of, [OuterAttempt.innerRequests]
         */
        public fun response(
            status: Int,
            retryAfter: List<String> = emptyList(),
            date: String? = null,
            shouldRetry: String? = null,
            bodyUntouched: Boolean = false,
            overrule: OutcomeClass? = null,
            wentOut: RequestHead? = null,
            inner: List<InnerRequest> = emptyList(),
        ): Outcome = Outcome(status, null, null, retryAfter, date, shouldRetry, 0, false, bodyUntouched, overrule, wentOut, inner, false)

        /**
         * A failure.
         *
         * @param exception what was thrown; an exception that ends the call later gets it as suppressed
         * @param lookUpNanos for [FailureKind.DNS]: how long the failed look-up stays cached below the driver
         * @param sentNothing positive proof that no request of this attempt wrote its head, or that its stream was refused. Silence proves nothing, and
         * neither does the type of an exception: it may be another request's.
         * @param bodyUntouched whether it is known that nothing of the request's body was handed out
         * @param overrule what the app's own `classify` said
         * @param wentOut the request as it left, where the driver saw it; null: as it came in
         * @param inner what layers further in told of, [OuterAttempt.innerRequests]
         * @param bodySpent whether the body cannot go again after this attempt, whatever the request's facts say: it proved to be another one than before, or the
         * attempt goes on alone and may still be writing it
         */
        public fun failure(
            kind: FailureKind,
            exception: Throwable? = null,
            lookUpNanos: Long = 0,
            sentNothing: Boolean = false,
            bodyUntouched: Boolean = false,
            overrule: OutcomeClass? = null,
            wentOut: RequestHead? = null,
            inner: List<InnerRequest> = emptyList(),
            bodySpent: Boolean = false,
        ): Outcome =
            Outcome(
                0,
                kind,
                exception,
                emptyList(),
                null,
                null,
                lookUpNanos,
                sentNothing,
                bodyUntouched,
                overrule,
                wentOut,
                inner,
                bodySpent,
            )
    }
}
