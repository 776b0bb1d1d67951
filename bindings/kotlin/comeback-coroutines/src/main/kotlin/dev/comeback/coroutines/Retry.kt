// retry { }: Comeback around any suspend function.
package dev.comeback.coroutines

import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.Block
import dev.comeback.driver.CallSession
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RequestFacts
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.isActive
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import java.io.InterruptedIOException
import kotlin.coroutines.cancellation.CancellationException
import kotlin.time.Duration.Companion.nanoseconds

/**
 * Runs [block], and repeats it as [policy] says. The last attempt's result is returned, or its exception is thrown as it is, with a report attached
 * ([dev.comeback.retryReport]). `retry { }` repeats on exceptions only; it does not look at statuses: pass a [classifier].
 *
 * ```
 * val user = comeback.retry(RetryPolicy.READ) { repository.load() }
 * val receipt = comeback.retry(RetryPolicy.READ) { attempt -> shop.pay(order, attempt.key()) }
 * ```
 *
 * **The block is taken to be repeatable**, as a GET is: only its author can know what it has done when it fails. With `repeat = NEVER` in the policy it
 * is repeated only after failures whose type says that nothing was sent, which is reliable for a block that makes one request. The [classifier] judges
 * results and exceptions. If a result leads to another attempt, it is dropped; the block itself must close what has to be closed.
 *
 * Cancellation of the calling coroutine ends the call at once, as does a `withTimeout` around it; a `withTimeout` inside the block limits one attempt.
 * `attempt_timeout` and `cut_at_deadline` cancel an attempt, which then counts as an [InterruptedIOException]. **A block must cooperate with that**, as `withTimeout`
 * says of its own: a block that suspends in cancellable functions is ended at the limit; one that blocks its thread is not, and the caller waits until it returns
 * (`runInterruptible` makes most blocking calls cancellable). What goes on after its attempt has failed, a callback for instance, can send no request any more that must
 * not be repeated, because the next attempt may send it too: it gets an [dev.comeback.AttemptEndedException]. An attempt is not abandoned when the network comes
 * back, because nobody knows what it has sent; give it a limit. Waits suspend on the coroutine's own dispatcher,
 * so `runTest` skips them. Limits run there too, as those of `withTimeout` do: under a test's virtual time they end at once.
 *
 * Inside the block Comeback's other layers stand down (Ktor plugin, OkHttp interceptor and call factory, `comeback-client`, a further `retry`) and report every
 * request they make. The block is repeated only if every request that may have gone out may be repeated: a POST needs a key that stays the same, [Attempt.key].
 * `repeat = ALWAYS` in [policy] vouches for the whole block.
 *
 * Inside are the block's own coroutines on whatever thread, calls that they execute, enqueue or made to be enqueued, calls from those calls' callbacks, and what a
 * `runBlocking` in the block runs on the thread that it blocks. **Three things cannot be seen**: what goes through clients without Comeback; what runs in a
 * scope or on a thread of its own; what a `runBlocking` hands to another dispatcher. They are the author's to know. Where such code has Comeback further in,
 * that layer acts by itself; if it gives up a request that must not be repeated and its exception reaches the block, wrapped or not, the block is not
 * repeated. An error status that reaches the block without that exception says nothing.
 *
 * @param label a name for the call in [dev.comeback.RetryEvent]s
 */
public suspend fun <T> Comeback.retry(
    policy: RetryPolicy = RetryPolicy.DEFAULT,
    classifier: RetryClassifier = RetryClassifier.Default,
    label: String? = null,
    block: suspend (attempt: Attempt) -> T,
): T {
    val keys = Attempt.Keys()
    val facts = policy.driverFacts
    if (facts == null || isClosed || LayerElement.of(currentCoroutineContext()) != null) return block(Attempt(1, keys))
    val session = CallSession(this, policy, label, RequestFacts("GET"))
    val known = Block()
    try {
        var number = 1
        while (true) {
            session.noteAttempt()
            val layer = LayerElement(OuterAttempt(), currentCoroutineContext())
            val attempted: Result<T>
            val step: NextStep
            try {
                attempted = attempted(session, Attempt(number++, keys), layer, block)
                isOutside()
                val outcome = outcomeOf(attempted, classifier, transportExceptions) { known.innerRequests }
                if (outcome == null) session.succeeded()
                step = if (outcome == null) NextStep.Deliver else session.failed(outcome, layer.outer)
            } finally {
                // What the block left running in its context is a part of it until it is decided what follows, and for good if another attempt may: that one may do
                // the same.
                layer.isOver = !layer.outer.isSealed
            }
            val next = if (step is NextStep.Sleep) session.slept(step) else step
            // During the wait too, a request of the last attempt may have gone out.
            if (next is NextStep.Go && !known.forbidsRepetition(facts)) continue
            if (next is NextStep.Go) session.stopped(StopReason.NotRepeatable, othersSent = true)
            return attempted.getOrElse { throw it.also(session::attachReportTo) }
        }
    } catch (cancelled: CancellationException) {
        // A session that has already ended ignores this.
        session.cancelled(if (cancelled is TimeoutCancellationException) CancelKind.CALL_TIMEOUT else CancelKind.CALLER)
        throw cancelled
    } finally {
        known.close()
    }
}

/** The result of [block]. Throws only if the call itself is cancelled. An exception is passed on as a value; otherwise coroutines might copy it. */
private suspend fun <T> attempted(
    session: CallSession,
    attempt: Attempt,
    layer: LayerElement,
    block: suspend (Attempt) -> T,
): Result<T> {
    val began = session.now()
    val limit = session.limit.hardNanos
    val outer = layer.outer
    val result =
        withContext(layer) {
            if (limit == null) {
                caught { block(attempt) }
            } else {
                // Once the limit has ended this scope, a failure is only how the block took it.
                withTimeoutOrNull(limit.nanoseconds) { caught { block(attempt) }.takeIf { it.isSuccess || isActive } }
            }
        }
    currentCoroutineContext().ensureActive()
    if (result == null) {
        outer.isOutOfTime()
        session.reached(began + checkNotNull(limit))
        return Result.failure(InterruptedIOException("timeout"))
    }
    val thrown = result.exceptionOrNull()
    // The coroutine is still active. A limit inside the block ends the attempt; any other cancellation is thrown on.
    if (thrown is CancellationException && thrown !is TimeoutCancellationException) throw thrown
    if (thrown is TimeoutCancellationException) outer.isOutOfTime()
    return result
}

private inline fun <T> caught(action: () -> T): Result<T> =
    try {
        Result.success(action())
    } catch (thrown: Throwable) {
        Result.failure(thrown)
    }

/** Null if it is a success. */
private fun outcomeOf(
    attempted: Result<*>,
    classifier: RetryClassifier,
    transports: Set<Class<out Throwable>>,
    innerRequests: () -> List<InnerRequest>,
): Outcome? {
    val thrown = attempted.exceptionOrNull()
    val said = caught { if (thrown == null) classifier.ofResult(attempted.getOrNull()) else classifier.ofException(thrown) }.getOrNull()
    said?.outcome?.let { return it(thrown, innerRequests()) }
    if (thrown == null) return null
    // An exception that the app classifies as a success is thrown, not retried.
    val kind = if (said != null) FailureKind.UNLISTED else kindOf(thrown, transports)
    return checkNotNull(AttemptResult.failure(kind).outcome)(thrown, innerRequests())
}

private fun kindOf(
    thrown: Throwable,
    transports: Set<Class<out Throwable>>,
): FailureKind = if (thrown is TimeoutCancellationException) FailureKind.ATTEMPT_TIMEOUT else FAILURES.kindOf(thrown, transports)
