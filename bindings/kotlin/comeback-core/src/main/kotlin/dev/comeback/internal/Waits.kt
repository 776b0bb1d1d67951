// All calls that sleep, so that an edge ends their sleep together.
package dev.comeback.internal

import dev.comeback.Comeback
import dev.comeback.Subscription
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import java.util.concurrent.ConcurrentHashMap

/** [session]'s [sleep]: [wake] is to be called when it may be over before its time. */
internal class Wait(
    val session: CallSession,
    val sleep: NextStep.Sleep,
    val wake: () -> Unit,
)

/**
 * Crossing to the core costs far more than its decision, and most when hundreds of threads wake up to do it. So the thread that reports an edge asks the
 * core for all waits at once, and each woken thread finds its answer ready. Beginning and ending a wait take constant time and no lock.
 */
internal class Waits(
    private val comeback: Comeback,
) {
    private val all = ConcurrentHashMap.newKeySet<Wait>()

    fun begin(wait: Wait): Subscription {
        all += wait
        comeback.hear()
        // Only now, so that an edge in between is not lost.
        if (wait.isOver()) contained { wait.wake() }
        return Subscription { all -= wait }
    }

    /** The network has changed, or the Comeback is closed. */
    fun wakeThoseThatAreOver() {
        // By the clock too: it went on while the device slept, and timers did not.
        val now = comeback.time.nanos()
        all.filter { it.isOver() || now >= it.sleep.askAt }.chunked(AT_ONCE).forEach { some ->
            if (!comeback.isClosed) contained { askAhead(some) }
            for (wait in some) contained { wait.wake() }
        }
    }

    /** A wait that gets no answer here asks for itself. */
    private fun askAhead(some: List<Wait>) {
        val asked = some.mapNotNull { wait -> wait.session.question()?.let { wait.session to it } }
        val answers = comeback.core.resume(asked.map { (_, question) -> question })
        for ((index, answer) in answers.withIndex()) {
            val (session, question) = asked[index]
            session.answeredAhead(question, answer)
        }
    }

    private fun Wait.isOver() = comeback.isClosed || sleep.isNews(session.network.snapshot)

    private companion object {
        /** Few enough that the first do not wait for the last. */
        const val AT_ONCE = 64
    }
}
