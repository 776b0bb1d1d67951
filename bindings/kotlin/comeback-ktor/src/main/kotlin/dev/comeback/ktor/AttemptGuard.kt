// Ends a single attempt: at its limit, or because the network it runs on is gone and it is begun anew.
package dev.comeback.ktor

import dev.comeback.CallSession
import dev.comeback.Comeback
import dev.comeback.DriverFacts
import dev.comeback.NetworkState
import dev.comeback.NextStep
import dev.comeback.Subscription
import io.ktor.util.AttributeKey
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableJob
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.time.Duration.Companion.nanoseconds

/**
 * Watches one attempt until its response head is there. Its coroutines are children of the call's, made only where there is something to watch:
 * the attempt itself runs in the caller's own coroutine, as it would without Comeback.
 */
internal class AttemptGuard(
    private val comeback: Comeback,
    private val session: CallSession,
    private val body: BodyWatch,
    val notedPath: Long,
    val facts: DriverFacts,
    private val attempt: CompletableJob,
    private val scope: CoroutineScope,
) {
    private val lock = Any()
    private var subscription: Subscription? = null
    private var timer: Job? = null
    private var asking: Job? = null

    /** Made with [asking]: most attempts see no change. */
    private var changes: Channel<Unit>? = null
    private var isDone = false
    private var hasHead = false
    private var limit: Long? = null
    private var began = 0L

    /** The attempt reached its limit and was ended. */
    @Volatile
    var isCut: Boolean = false
        private set

    /** The attempt was given up; the call goes on with a fresh one. */
    @Volatile
    var isAbandoned: Boolean = false
        private set

    /** For reads, writes and connects each; see [dev.comeback.Limit]. */
    val inactivityNanos: Long? = session.limit.inactivityNanos

    /** @param hardNanos what the attempt may take from now until its response head; null: no limit */
    fun begin(hardNanos: Long?) {
        limit = hardNanos
        began = session.now()
        watch(hardNanos)
    }

    /** A response head is there: nothing ends the attempt any more, unless a plugin makes another request for it. */
    fun headCame() {
        synchronized(lock) {
            if (isDone || hasHead) return
            hasHead = true
        }
        unwatch()
    }

    /** A request of the attempt goes out. After a head it is another one, for instance with a fresh token; what the attempt may take is still the same. */
    fun goesOut() {
        synchronized(lock) {
            if (isDone || !hasHead) return
            hasHead = false
        }
        watch(limit?.let { it - (session.now() - began) })
    }

    /** The attempt is over. */
    fun done() {
        synchronized(lock) {
            if (isDone) return
            isDone = true
        }
        unwatch()
    }

    private fun watch(hardNanos: Long?) {
        if (hardNanos != null) {
            timer =
                scope.launch {
                    delay(hardNanos.nanoseconds)
                    end { isCut = true }
                }
        }
        subscription = comeback.subscribe(::changed)
        changed()
    }

    private fun unwatch() {
        subscription?.close()
        timer?.cancel()
        synchronized(lock) { asking.also { asking = null } }?.cancel()
    }

    private fun changed() {
        if (!hasMoved()) return
        synchronized(lock) {
            if (isDone || hasHead) return
            val changes = changes ?: Channel<Unit>(Channel.CONFLATED).also { changes = it }
            changes.trySend(Unit)
            if (asking == null) asking = scope.launch { ask(changes) }
        }
    }

    private fun hasMoved(): Boolean {
        val network = comeback.snapshot
        return network.path != notedPath && network.state != NetworkState.OFFLINE && network.state != NetworkState.BLOCKED
    }

    private suspend fun ask(changes: Channel<Unit>) {
        var askAt: Long? = null
        while (true) {
            await(changes, askAt)
            // No engine tells what it has sent, and silence proves nothing.
            val step =
                synchronized(lock) {
                    if (isDone || hasHead) return
                    session.interrupted(sentNothing = false, bodyUntouched = body.isUntouched)
                }
            when (step) {
                is NextStep.Keep -> askAt = step.askAt
                is NextStep.Restart -> return end { isAbandoned = true }
                else -> return
            }
        }
    }

    private suspend fun await(
        changes: Channel<Unit>,
        askAt: Long?,
    ) {
        if (askAt == null) return changes.receive()
        val left = askAt - synchronized(lock) { session.now() }
        val isChanged = left > 0 && withTimeoutOrNull(left.nanoseconds) { changes.receive() } != null
        if (!isChanged) synchronized(lock) { session.reached(askAt) }
    }

    private inline fun end(mark: () -> Unit) {
        synchronized(lock) {
            if (isDone || hasHead) return
            mark()
        }
        attempt.cancel(CancellationException("Comeback ended this attempt"))
    }

    companion object {
        val KEY = AttributeKey<AttemptGuard>("ComebackAttempt")
    }
}
