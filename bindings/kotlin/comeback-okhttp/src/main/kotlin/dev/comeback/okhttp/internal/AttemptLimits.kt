// Puts an attempt's limits on the chain that makes it.
package dev.comeback.okhttp.internal

import dev.comeback.driver.DriverFacts
import dev.comeback.driver.LimitTimer
import dev.comeback.driver.shortened
import dev.comeback.driver.shorter
import okhttp3.Call
import okhttp3.Interceptor
import java.util.concurrent.TimeUnit.MILLISECONDS

/** This chain with the client's timeouts shortened to [inactivityNanos], and its connect timeout also to [connectNanos]. The chain itself if nothing gets shorter. */
internal fun Interceptor.Chain.limitedTo(
    inactivityNanos: Long?,
    connectNanos: Long?,
): Interceptor.Chain {
    var chain = this
    shortened(connectTimeoutMillis(), shorter(inactivityNanos, connectNanos))?.let { chain = chain.withConnectTimeout(it, MILLISECONDS) }
    shortened(readTimeoutMillis(), inactivityNanos)?.let { chain = chain.withReadTimeout(it, MILLISECONDS) }
    shortened(writeTimeoutMillis(), inactivityNanos)?.let { chain = chain.withWriteTimeout(it, MILLISECONDS) }
    return chain
}

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
