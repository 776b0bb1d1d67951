// One call that another of Comeback's libraries drives: it names what happened, this makes events of it and folds the report.
package dev.comeback.driver

import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.RetryEvent
import dev.comeback.RetryReport
import dev.comeback.StopReason
import dev.comeback.attachReport
import dev.comeback.internal.Events
import dev.comeback.internal.InTurn
import dev.comeback.refusedToRepeat
import java.util.Locale

/**
 * A call that is driven elsewhere. What happens to it is told here in its order, by one thread at a time, in the names that the vectors use
 * (`connect_refused`). It computes no rule. That thread has other calls too, so it does not wait for the listener.
 *
 * @param isInner a layer further out acts, and tells the listener and the caller by itself
 * @param keyIsMade the library makes the request's key
 *
 * @suppress
 */
@InternalComebackApi
public class RelayedCall(
    private val comeback: Comeback,
    private val label: String?,
    private val isInner: Boolean = false,
    private val keyIsMade: Boolean = false,
) {
    private val id by lazy(LazyThreadSafetyMode.NONE) { comeback.nextCallId() }
    private val events = Events(comeback, lock = this)

    /** Where the listener hears of the call; null: nobody listens, or the app has an executor for it. */
    private val turn = if (isInner || !comeback.hasListener || comeback.hasListenerExecutor) null else InTurn(comeback.time)

    /** Whether the call waits for its next attempt. */
    @Volatile
    public var isWaiting: Boolean = false
        private set

    /** What was tried so far; null if nothing failed. */
    public val report: RetryReport?
        get() = RetryReport.of(events.toList()).takeIf { !isInner && (it.reason != null || it.attempts.isNotEmpty() || it.abandoned > 0) }

    /** See [RetryReport.mayHaveArrived]. */
    public val mayHaveArrived: Boolean get() = RetryReport.of(events.toList()).mayHaveArrived

    /** @param status of the response; without one [failure] says what happened */
    public fun attemptFailed(
        outcome: String,
        status: Int,
        failure: String?,
        counted: Boolean,
    ) {
        val kind = failure?.let { named<FailureKind>(it) }
        tell(RetryEvent.AttemptFailed(id, label, named(outcome), status.takeIf { kind == null }, kind, counted))
    }

    public fun attemptAbandoned() {
        tell(RetryEvent.AttemptAbandoned(id, label))
    }

    public fun waitPlanned(
        plannedNanos: Long,
        windowNanos: Long,
        floorNanos: Long,
        why: String,
    ) {
        isWaiting = true
        tell(RetryEvent.WaitPlanned(id, label, plannedNanos, windowNanos, floorNanos, named(why)))
    }

    public fun resumed(
        plannedNanos: Long,
        effectiveNanos: Long,
        by: String,
    ) {
        isWaiting = false
        tell(RetryEvent.Resumed(id, label, plannedNanos, effectiveNanos, named(by)))
    }

    /**
     * @param ms what the server asked for, if that is the reason
     * @param mayHaveArrived see [RetryReport.mayHaveArrived]
     */
    public fun finished(
        reason: String?,
        ms: Long,
        counted: Int,
        elapsedNanos: Long,
        mayHaveArrived: Boolean,
    ) {
        isWaiting = false
        tell(RetryEvent.Finished(id, label, reason?.let { stopReason(it, ms) }, counted, elapsedNanos, mayHaveArrived))
    }

    /** Attaches [report] to the exception this call ends with. */
    public fun attachReportTo(thrown: Throwable) {
        report?.let { attachReport(it, thrown, emptyList(), it.mayHaveArrived && (keyIsMade || it.refusedToRepeat)) }
    }

    /** Runs [action], the call's end, once the listener has heard all that was told before; at once if the call does not wait for it. */
    public fun whenTold(action: () -> Unit) {
        if (turn == null) action() else turn.add(action)
    }

    private fun tell(event: RetryEvent) {
        events.add(event)
        when {
            isInner -> Unit
            turn == null -> events.tell()
            else -> turn.add(events::tell)
        }
    }

    private fun stopReason(
        name: String,
        ms: Long,
    ): StopReason =
        when (name) {
            "attempts" -> StopReason.Attempts
            "elapsed" -> StopReason.Elapsed
            "server_wait_too_long" -> StopReason.ServerWaitTooLong(ms)
            "not_repeatable" -> StopReason.NotRepeatable
            "body_not_replayable" -> StopReason.BodyNotReplayable
            "permanent" -> StopReason.Permanent
            "offline" -> StopReason.Offline
            "budget" -> StopReason.Budget
            "breaker" -> StopReason.Breaker
            "caller" -> StopReason.Cancelled(CancelKind.CALLER)
            "call_timeout" -> StopReason.Cancelled(CancelKind.CALL_TIMEOUT)
            "closed" -> StopReason.Cancelled(CancelKind.CLOSED)
            else -> StopReason.Internal
        }

    private inline fun <reified T : Enum<T>> named(name: String): T = enumValueOf(name.uppercase(Locale.ROOT))
}
