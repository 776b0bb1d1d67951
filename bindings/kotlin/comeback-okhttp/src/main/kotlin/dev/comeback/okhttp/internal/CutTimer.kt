// Cancels a call when the policy's time for it is over.
package dev.comeback.okhttp.internal

import dev.comeback.driver.DriverFacts
import dev.comeback.driver.LimitTimer
import okhttp3.Call

/** Cancels [call] when its time is over. Started once. */
internal class CutTimer(
    private val call: Call,
) : LimitTimer() {
    override fun reached(): Unit = call.cancel()

    /** Whether the timer came first; then the call is cancelled. */
    fun ended(): Boolean {
        val isOver = stop()
        // The timer's own thread may only be about to do it.
        if (isOver) call.cancel()
        return isOver
    }
}

/** Running, for what is left of a call that began [spentNanos] ago; null if the policy does not cut. */
internal fun cutTimer(
    call: Call,
    facts: DriverFacts,
    spentNanos: Long,
): CutTimer? = facts.cutAfterNanos?.let { CutTimer(call).apply { start(it - spentNanos) } }
