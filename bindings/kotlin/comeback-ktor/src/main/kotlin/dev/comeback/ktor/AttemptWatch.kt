// Watches one attempt until its response head is there: ends it at its limit, and gives it up when the network it runs on is gone.
package dev.comeback.ktor

import dev.comeback.NetworkState
import dev.comeback.Subscription
import dev.comeback.driver.Limit
import dev.comeback.driver.LimitTimer
import dev.comeback.driver.NextStep
import dev.comeback.driver.orNull
import io.ktor.client.statement.HttpResponse
import kotlinx.coroutines.DisposableHandle
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.nanoseconds

/**
 * The limit goes by real time, and by the engine's own where its dispatcher has timers of its own, as a mocked engine's has in a test. A caller's virtual time ends no
 * attempt on a real network. A coroutine is made only when there is something to ask.
 */
internal class AttemptWatch(
    private val attempt: Attempt,
    private val loop: SendLoop,
    private val limit: Limit,
) : LimitTimer(),
    () -> Unit {
    private var subscription: Subscription? = null

    /** Of the engine's own time, or the one after the end. */
    private var timer: DisposableHandle? = null
    private var asking: Job? = null

    /** Made with [asking]: most attempts see no change. */
    private var changes: Channel<Unit>? = null
    private var isOver = false
    private var hasHead = false

    /** The limit was reached while there was nothing to end. */
    private var isTimeOver = false

    /** The attempt begins: [spentNanos] of what it may take are over, if it goes on with an earlier one. */
    fun begin(spentNanos: Long) {
        orNull {
            limit.hardNanos?.let { beginLimit(it - spentNanos) }
            watchNetwork()
        }
    }

    private fun beginLimit(nanos: Long) {
        val timers = loop.setup.enginesTimers
        if (timers == null) start(nanos) else timer = timers.runIn(nanos, ::reached)
    }

    private fun watchNetwork() {
        subscription = loop.network.subscribe(this)
        invoke()
    }

    /** A response head is there: nothing ends the attempt any more, unless a plugin makes another request for it, or its body is a part of it. */
    fun headCame(response: HttpResponse) {
        if (loop.facts.readBodyBytes != null && response.hasReadableBody) return
        synchronized(this) {
            if (isOver || hasHead) return
            hasHead = true
        }
        unwatchNetwork()
    }

    /** A request of the attempt goes out. After a head it is a further request, for instance with a fresh token; the attempt's limit stays the same. */
    fun goesOut() {
        synchronized(this) {
            if (isOver || !hasHead) return
            hasHead = false
        }
        if (isTimeOver) reached() else orNull { watchNetwork() }
    }

    /** The attempt is over. */
    fun end() {
        synchronized(this) {
            if (isOver) return
            isOver = true
        }
        stop()
        timer?.dispose()
        unwatchNetwork()
    }

    private fun unwatchNetwork() {
        subscription?.close()
        synchronized(this) { asking.also { asking = null } }?.cancel()
    }

    /** The network has changed. */
    override fun invoke() {
        if (!hasMoved()) return
        synchronized(this) {
            if (isOver || hasHead) return
            val changes = changes ?: Channel<Unit>(Channel.CONFLATED).also { changes = it }
            changes.trySend(Unit)
            if (asking == null) asking = loop.setup.client.launch { ask(changes) }
        }
    }

    private fun hasMoved(): Boolean {
        val network = loop.network.snapshot
        return network.path != attempt.notedPath && network.state != NetworkState.OFFLINE && network.state != NetworkState.BLOCKED
    }

    private suspend fun ask(changes: Channel<Unit>) {
        var askAt: Long? = null
        while (true) {
            await(changes, askAt)
            val step = attempt.whileHeld(::asked) { it is NextStep.Restart } ?: return
            when (step) {
                is NextStep.Keep -> askAt = step.askAt
                is NextStep.Restart -> return endAttempt()
                else -> return
            }
        }
    }

    /** Null if there is nothing to ask about any more. */
    private fun asked(sentNothing: Boolean): NextStep? =
        synchronized(this) {
            if (isOver || hasHead) return null
            loop.session.interrupted(sentNothing, loop.body.isUntouched, attempt.innerRequests).also {
                attempt.isAbandoned =
                    it is NextStep.Restart
            }
        }

    private suspend fun await(
        changes: Channel<Unit>,
        askAt: Long?,
    ) {
        if (askAt == null) return changes.receive()
        val left = askAt - synchronized(this) { loop.session.now() }
        val isChanged = left > 0 && withTimeoutOrNull(left.nanoseconds) { changes.receive() } != null
        if (!isChanged) synchronized(this) { loop.session.reached(askAt) }
    }

    override fun reached() {
        synchronized(this) {
            if (isOver || attempt.isAbandoned) return
            isTimeOver = true
            if (hasHead) return
            attempt.isCut = true
        }
        endAttempt()
    }

    private fun endAttempt() {
        synchronized(this) {
            if (isOver || hasHead) return
            // It may take a moment to notice, and no more.
            timer =
                loop.setup.client.coroutineContext
                    .runIn(GRACE.inWholeNanoseconds, attempt::leaveAlone)
        }
        attempt.end()
    }

    private companion object {
        val GRACE = 30.milliseconds
    }
}
