// What crosses to the core and comes back: Kotlin's values as the binding's records, and an answer's events.
package dev.comeback.internal

import dev.comeback.FailureKind
import dev.comeback.NetworkSnapshot
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.StopReason
import dev.comeback.WaitReason
import dev.comeback.WokenBy
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestHead
import dev.comeback.ffi.Answer
import dev.comeback.ffi.DecideInput
import dev.comeback.ffi.EndEvent
import dev.comeback.ffi.EndReason
import dev.comeback.ffi.ToldRequest
import dev.comeback.ffi.FailureKind as CoreFailureKind
import dev.comeback.ffi.NetworkSnapshot as CoreNetworkSnapshot
import dev.comeback.ffi.NetworkState as CoreNetworkState
import dev.comeback.ffi.OutcomeClass as CoreOutcomeClass
import dev.comeback.ffi.RequestHead as CoreRequestHead

internal fun NetworkSnapshot.toCore() = CoreNetworkSnapshot(CoreNetworkState.valueOf(state.name), since, epoch, path)

internal fun RequestHead.toCore() = CoreRequestHead(method, key, conditions, cacheControl)

internal fun InnerRequest.toCore() = ToldRequest(policy?.compiled?.bytes ?: NO_POLICY, head.toCore(), sentNothing)

/** For a layer without a policy. */
private val NO_POLICY = ByteArray(0)

/** The question what follows from this outcome. [cameIn]: the request as its driver got it. [inner]: what is known of requests of layers further in. */
internal fun Outcome.toCore(
    policy: ByteArray,
    call: ByteArray,
    cameIn: RequestHead,
    inner: List<InnerRequest>,
    noted: NetworkSnapshot,
    now: Long,
    wallMs: Long?,
    network: NetworkSnapshot,
) = DecideInput(
    policy = policy,
    call = call,
    noted = noted.toCore(),
    now = now,
    wallMs = wallMs,
    network = network.toCore(),
    status = status,
    failure = failure?.let { CoreFailureKind.valueOf(it.name) },
    retryAfter = retryAfter.ifEmpty { inner.flatMap { it.retryAfter } },
    date = date,
    shouldRetry = shouldRetry,
    lookUp = lookUpNanos,
    sentNothing = sentNothing,
    bodyUntouched = bodyUntouched,
    bodySpent = bodySpent,
    wentOut = wentOut?.changedFrom(cameIn)?.toCore(),
    inner = inner.map { it.toCore() },
    overrule = overrule?.let { CoreOutcomeClass.valueOf(it.name) },
)

/** The request that left, for the core to judge; null if nothing further in has changed it. A key that replaced the call's key does not count. */
private fun RequestHead.changedFrom(cameIn: RequestHead): RequestHead? =
    when {
        isSameAs(cameIn) -> null
        key != cameIn.key -> withoutKey()
        else -> this
    }

/** The events of an answer but for the final one, in order. */
internal inline fun Answer.tellEvents(
    callId: () -> Long,
    label: String?,
    tell: (RetryEvent) -> Unit,
) {
    failed?.let {
        val failure = it.failure?.let { kind -> FailureKind.valueOf(kind.name) }
        val outcome = OutcomeClass.valueOf(it.`class`.name)
        tell(RetryEvent.AttemptFailed(callId(), label, outcome, it.status.takeIf { failure == null }, failure, it.counted))
    }
    if (abandoned) tell(RetryEvent.AttemptAbandoned(callId(), label))
    wait?.let { tell(RetryEvent.WaitPlanned(callId(), label, it.planned, it.window, it.floor, WaitReason.valueOf(it.why.name))) }
    resumed?.let { tell(RetryEvent.Resumed(callId(), label, it.planned, it.effective, WokenBy.valueOf(it.by.name))) }
}

internal fun EndEvent.toEvent(
    callId: Long,
    label: String?,
) = RetryEvent.Finished(callId, label, reason(), counted, elapsed, mayHaveArrived)

internal fun EndEvent.reason(): StopReason? =
    when (reason) {
        EndReason.DONE -> null
        EndReason.ATTEMPTS -> StopReason.Attempts
        EndReason.ELAPSED -> StopReason.Elapsed
        EndReason.SERVER_WAIT_TOO_LONG -> StopReason.ServerWaitTooLong(ms ?: 0)
        EndReason.NOT_REPEATABLE -> StopReason.NotRepeatable
        EndReason.BODY_NOT_REPLAYABLE -> StopReason.BodyNotReplayable
        EndReason.PERMANENT -> StopReason.Permanent
        EndReason.OFFLINE -> StopReason.Offline
        EndReason.BUDGET -> StopReason.Budget
        EndReason.BREAKER -> StopReason.Breaker
        EndReason.INTERNAL -> StopReason.Internal
    }
