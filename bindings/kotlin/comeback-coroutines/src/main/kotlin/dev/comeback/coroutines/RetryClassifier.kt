// The outcome of an attempt of retry { }, by the app's own classifier, else by the exception's type.
package dev.comeback.coroutines

import dev.comeback.FailureKind
import dev.comeback.OutcomeClass
import dev.comeback.driver.FailedLookUps
import dev.comeback.driver.FailureTypes
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.Outcome
import dev.comeback.driver.Promise
import dev.comeback.driver.promise

/**
 * The outcome of an attempt. The policy decides what follows from it.
 */
public class AttemptResult private constructor(
    internal val outcome: ((exception: Throwable?, inner: List<InnerRequest>) -> Outcome)?,
) {
    public companion object {
        /** It is the answer. */
        @JvmField
        public val SUCCESS: AttemptResult = AttemptResult(null)

        /**
         * An HTTP status came back, below 400 or not: the policy's `retry_statuses` say whether it goes again.
         *
         * @param retryAfter the lines of its Retry-After headers, as they came
         * @param date its Date header
         */
        @JvmStatic
        @JvmOverloads
        public fun status(
            status: Int,
            retryAfter: List<String> = emptyList(),
            date: String? = null,
        ): AttemptResult = AttemptResult { _, inner -> Outcome.response(status, retryAfter, date, inner = inner) }

        /**
         * It failed in this way; [outcome] may say that it means something else than this kind of failure does by itself. It goes again if
         * failures of this class do.
         */
        @JvmStatic
        @JvmOverloads
        public fun failure(
            kind: FailureKind,
            outcome: OutcomeClass? = null,
        ): AttemptResult =
            AttemptResult { exception, inner ->
                val lookUp = if (kind == FailureKind.DNS) FailedLookUps.cachedNanos() else 0
                // Requests through our own layers were reported. For all others the block's author is responsible.
                Outcome.failure(
                    kind,
                    exception,
                    lookUp,
                    sentNothing = kind.promise == Promise.NEVER_SENT,
                    overrule = outcome,
                    inner = inner,
                )
            }
    }
}

/**
 * Judges an attempt; null leaves it to Comeback, see [Default]. It is called in the coroutine of the call, by many calls at once. If it throws, that counts
 * as null.
 */
public interface RetryClassifier {
    /** The block returned [result]. */
    public fun ofResult(result: Any?): AttemptResult? = null

    /** The block threw [exception]; never the cancellation of the call itself. */
    public fun ofException(exception: Throwable): AttemptResult? = null

    /**
     * Every result is a success. Exceptions are judged by their type, along causes and suppressed exceptions: I/O errors of the platform, OkHttp, Ktor, Okio
     * and Retrofit by what they say; those that only wrap one by what they wrap ([dev.comeback.Comeback.Builder.transportExceptions]); everything else is
     * permanent, because only the app knows what it means. Retrofit's `HttpException` is such: see [RetrofitClassifier]. A `withTimeout` inside the block that
     * ran out is an attempt's timeout.
     */
    public object Default : RetryClassifier
}

/** By type. Exceptions of any other package are the app's own. */
internal val FAILURES = FailureTypes(listOf("okhttp3.", "okio.", "io.ktor.", "kotlinx.io.", "kotlinx.coroutines.", "retrofit2."))
