// One call: what Rust tells of it becomes events, a response or an exception.
package dev.comeback.client

import dev.comeback.FailureKind
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import dev.comeback.client.ffi.End
import dev.comeback.client.ffi.EndKind
import dev.comeback.client.ffi.EventKind
import dev.comeback.client.ffi.ToldEvent
import dev.comeback.driver.RelayedCall
import kotlinx.coroutines.CancellableContinuation
import java.io.IOException
import java.util.Locale
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException

internal class CallInFlight(
    private val relayed: RelayedCall,
    private val continuation: CancellableContinuation<ClientResponse>,
) {
    /** Whether it is being ended because the Comeback was closed. */
    @Volatile
    private var isEnded = false

    /** True if it waits and must be ended, because a closed Comeback ends waits. */
    fun endIfWaiting(): Boolean {
        if (!relayed.isWaiting) return false
        isEnded = true
        return true
    }

    fun happened(event: ToldEvent) {
        when (event.kind) {
            EventKind.ATTEMPT_FAILED -> relayed.attemptFailed(event.`class`, event.status, event.failure, event.counted)
            EventKind.ATTEMPT_ABANDONED -> relayed.attemptAbandoned()
            EventKind.WAIT_PLANNED -> relayed.waitPlanned(event.planned, event.window, event.floor, event.why)
            EventKind.RESUMED -> relayed.resumed(event.planned, event.effective, event.by)
            EventKind.FINISHED -> relayed.finished(reason(event), event.ms, event.attempts, event.elapsed, event.mayHaveArrived)
        }
    }

    fun ended(end: End) {
        if (end.kind == EndKind.ANSWERED) {
            val response = ClientResponse(end.status, pairs(end.headers), end.body, relayed.report)
            relayed.whenTold { continuation.resume(response) }
        } else {
            val exception = exception(end)
            relayed.whenTold { failWith(exception) }
        }
    }

    /** No more news of this call will come. */
    fun abandoned(problem: Throwable?) {
        failWith(
            when (problem) {
                null -> ClientException.Closed(relayed.report)
                else -> ClientException.Internal("what became of the call cannot be heard: $problem", relayed.report, problem)
            },
        )
    }

    private fun failWith(exception: IOException) {
        if (!continuation.isActive) return
        relayed.attachReportTo(exception)
        continuation.resumeWithException(exception)
    }

    private fun exception(end: End): IOException {
        val report = relayed.report
        return when (end.kind) {
            EndKind.STOPPED -> {
                if (report == null) {
                    ClientException.Internal(end.problem, null)
                } else {
                    RetryStoppedException.of(report.reason ?: StopReason.Internal, end.status, pairs(end.headers), report)
                }
            }

            EndKind.INVALID -> {
                ClientException.InvalidRequest(end.problem)
            }

            EndKind.FAILED -> {
                val kind = end.failure?.let { FailureKind.valueOf(it.uppercase(Locale.ROOT)) }
                ClientException.Failed(end.problem, kind, report)
            }

            // By the caller: then nobody listens any more.
            EndKind.CLOSED, EndKind.CANCELLED -> {
                ClientException.Closed(report)
            }

            EndKind.ANSWERED, EndKind.PANICKED -> {
                ClientException.Internal(end.problem, report)
            }
        }
    }

    private fun reason(event: ToldEvent): String? = if (isEnded && event.reason == "caller") "closed" else event.reason

    /** Names and values alternate in the list. */
    private fun pairs(turns: List<String>): List<Pair<String, String>> = turns.chunked(2) { (name, value) -> name to value }
}
