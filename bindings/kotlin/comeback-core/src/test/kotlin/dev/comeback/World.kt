// What a test of a call needs: a Comeback in a time that stands still, and everything its listener heard.
package dev.comeback

import dev.comeback.driver.CallSession
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.Time
import dev.comeback.internal.Core
import dev.comeback.internal.NativeCore
import java.util.concurrent.CopyOnWriteArrayList

internal class World(
    val core: Core = NativeCore,
    listening: Boolean = true,
    val time: Time = TestTime(),
) {
    val connectivity = ManualConnectivity(time, NativeCore)
    val heard = CopyOnWriteArrayList<RetryEvent>()
    val comeback = Comeback(connectivity, if (listening) RetryListener { heard += it } else null, time, core)

    val finals: List<RetryEvent.Finished> get() = heard.filterIsInstance<RetryEvent.Finished>()

    fun session(
        policy: RetryPolicy = STEADY,
        facts: RequestFacts = RequestFacts("GET"),
        label: String? = null,
        clientEnd: Long? = null,
    ): CallSession = CallSession(comeback, policy, label, facts, clientEnd = clientEnd, seed = 1).apply { noteAttempt() }

    companion object {
        /** Waits 1, 2, 4 s. */
        val STEADY = RetryPolicy { jitter = Jitter.NONE }
        val RESET = Outcome.failure(FailureKind.RESET)
        const val SECOND = 1_000_000_000L
    }
}

/** Runs [action] in a thread of its own that a failing test does not wait for. */
internal fun inThread(action: () -> Unit): Thread = Thread(action).apply { isDaemon = true }.apply { start() }

/** Waits until the thread waits, so that a test is about a wait that is going on. */
internal fun Thread.awaitWaiting() {
    while (state != Thread.State.WAITING && state != Thread.State.TIMED_WAITING) {
        check(isAlive) { "the thread does not wait" }
        Thread.onSpinWait()
    }
}

internal fun Thread.joinSoon() {
    join(10_000)
    check(!isAlive) { "still waiting: ${stackTrace.toList()}" }
}
