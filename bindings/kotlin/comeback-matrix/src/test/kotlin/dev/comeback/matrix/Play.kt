// Plays one cell: a server of its own, one call, and what the caller got.
package dev.comeback.matrix

import dev.comeback.RetryEvent
import dev.comeback.coroutines.AttemptResult
import dev.comeback.coroutines.RetryClassifier
import dev.comeback.coroutines.retry
import dev.comeback.retryReport
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.withTimeoutOrNull

/** What is known of a cell once its call is over. */
internal class Played(
    val cell: Cell,
    val arrivals: List<Arrival>,
    val brokenOnReused: Int,
    val answer: Answer?,
    val thrown: Throwable?,
    val events: List<RetryEvent>,
) {
    val finished: List<RetryEvent.Finished> get() = events.filterIsInstance<RetryEvent.Finished>()
    val failed: List<RetryEvent.AttemptFailed> get() = events.filterIsInstance<RetryEvent.AttemptFailed>()
    val abandoned: Int get() = events.count { it is RetryEvent.AttemptAbandoned }

    override fun toString(): String = "${arrivals.size} arrived, answer ${answer?.status}, thrown $thrown, $events"
}

/** A call that is over, whose server still listens for what comes too late. */
internal class Playing(
    private val cell: Cell,
    private val label: String,
    private val server: FaultServer,
    private val answer: Answer?,
    private val thrown: Throwable?,
) {
    val ended = System.nanoTime()

    /** Whether the server has seen anything of it so far. */
    val hasArrived: Boolean get() = server.arrivals.isNotEmpty()

    fun judge(): List<Violation> {
        server.close()
        return judge(Played(cell, server.arrivals.toList(), server.brokenOnReused, answer, thrown, Comebacks.eventsOf(label)))
    }
}

/** @param cancelAfterMillis when the caller gives up, in the middle of whatever is going on; null: it waits for the end */
internal suspend fun play(
    cell: Cell,
    label: String,
    cancelAfterMillis: Long? = null,
): Playing {
    val server = FaultServer(cell)
    val rig =
        when {
            cell.driver == Driver.CLIENT -> ClientRig(cell, server, label)
            cell.driver.isKtor -> KtorRig(cell, server, label)
            else -> OkHttpRig(cell, server, label)
        }
    return rig.use {
        try {
            val answer =
                withTimeout(HANG_MILLIS) {
                    if (cell.fault == Fault.DROPPED) {
                        rig.warm()
                        // What a second Comeback made of that is not what is judged.
                        Comebacks.eventsOf(label)
                    }
                    if (cancelAfterMillis ==
                        null
                    ) {
                        call(cell, rig, server, label)
                    } else {
                        withTimeoutOrNull(cancelAfterMillis) { call(cell, rig, server, label) }
                    }
                }
            Playing(cell, label, server, answer, null)
        } catch (hung: TimeoutCancellationException) {
            Playing(cell, label, server, null, Hung(hung))
        } catch (thrown: Throwable) {
            Playing(cell, label, server, null, thrown)
        }
    }
}

internal class Hung(
    cause: Throwable,
) : Exception("the call does not end", cause)

private suspend fun call(
    cell: Cell,
    rig: Rig,
    server: FaultServer,
    label: String,
): Answer {
    val key = "caller's".takeIf { cell.send == Send.POST_KEYED }
    if (cell.outer == Outer.NOTHING) return rig.call(key)
    rig.prepare(key)
    val unended = Unended(cell, server)
    return Comebacks.first.retry(cell.policy, ANSWERS, label) { attempt ->
        val inside = if (cell.send == Send.POST_ATTEMPT_KEY) attempt.key() else key
        when (cell.made) {
            Made.IN_RUN_BLOCKING -> runBlocking { rig.call(inside) }
            Made.PAST_ITS_END -> unended.attempt { rig.call(inside) }
            Made.IN_SCOPE -> SCOPE.async { rig.call(inside) }.await()
            else -> rig.call(inside)
        }
    }
}

private val ANSWERS =
    object : RetryClassifier {
        override fun ofResult(result: Any?): AttemptResult? = (result as? Answer)?.let { AttemptResult.status(it.status, it.retryAfter) }
    }

private val SCOPE = CoroutineScope(SupervisorJob() + Dispatchers.IO)

private const val HANG_MILLIS = 20_000L
