// Waiting without a thread: by the coroutine's own dispatcher, so that a test's virtual time drives it.
package dev.comeback.coroutines

import dev.comeback.InternalComebackApi
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import kotlinx.coroutines.Job
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.time.Duration.Companion.nanoseconds

/**
 * Suspends as [sleep] says: until its time, an edge, [dev.comeback.Comeback.close], or the end of [otherwise]. Then it asks the core, and goes on sleeping as
 * long as the core says so. Returns the next step, or null if [otherwise] has ended.
 *
 * @suppress
 */
@InternalComebackApi
public suspend fun CallSession.slept(
    sleep: NextStep.Sleep,
    otherwise: Job? = null,
): NextStep? {
    var step: NextStep = sleep
    while (step is NextStep.Sleep) {
        suspendUntil(step, otherwise)
        if (otherwise?.isActive == false) return null
        step = woken()
    }
    return step
}

private suspend fun CallSession.suspendUntil(
    sleep: NextStep.Sleep,
    otherwise: Job?,
) {
    val left = sleep.askAt - now()
    if (left <= 0) return
    // Without a parent, so that nothing is left of it afterwards.
    val signal = Job()
    val edge = wakeEarly(sleep) { signal.complete() }
    val end = otherwise?.invokeOnCompletion { signal.complete() }
    try {
        // If the delay has ended, the time has come, even if a real clock stands still while a test's time goes on.
        if (withTimeoutOrNull(left.nanoseconds) { signal.join() } == null) reached(sleep.askAt)
    } finally {
        edge.close()
        end?.dispose()
    }
}
