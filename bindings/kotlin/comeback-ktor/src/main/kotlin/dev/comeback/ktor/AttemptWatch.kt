// Watches one attempt until its response head arrives. It ends the attempt at its limit, and gives it up when the network it runs on is gone.
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
 * The limit is measured in real time. If the engine's dispatcher has timers of its own, they measure it: a mocked engine in a test runs on virtual time. The
 * caller's dispatcher has no part in it, so `runTest` does not end an attempt on a real network. A coroutine is started only when the core has to be asked.
 */
internal class AttemptWatch(
    private val attempt: Attempt,
    private val loop: SendLoop,
    private val limit: Limit,
) : LimitTimer(),
    () -> Unit {
    private var subscription: Subscription? = null

    /** The limit by the engine's own timers, and later [GRACE]. */
    private var timer: DisposableHandle? = null
    private var asking: Job? = null

    /** Made together with [asking]. Most attempts see no change of the network. */
    private var changes: Channel<Unit>? = null
    private var isOver = false
    private var hasHead = false

    /** The limit was reached, perhaps after a head had come. */
    private var isTimeOver = false

    /** The attempt begins. If it goes on after a redirect, it has lasted for [spentNanos] already. */
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

    /** A response head has come. Nothing ends the attempt any more, unless its body is read within it or a plugin makes another request for it. */
    fun headCame(response: HttpResponse) {
        if (loop.facts.readBodyBytes != null && response.hasReadableBody) return
        synchronized(this) {
            if (isOver || hasHead) return
            hasHead = true
        }
        unwatchNetwork()
    }

    /** A request of the attempt goes out. After a head it is another one, for instance with a fresh token. The attempt's limit stays the same. */
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

    /** The core's answer. Null: the attempt is over, or has its head. */
    private fun asked(sentNothing: Boolean): NextStep? =
        synchronized(this) {
            if (isOver || hasHead) return null
            loop.session.interrupted(sentNothing, loop.body.isUntouched, attempt.earlierRequests, attempt.outer).also {
                attempt.isAbandoned = it is NextStep.Restart
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
            // The attempt may need a moment to stop. After that the caller goes on without it.
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
