// A made-up call, so that the first real one that fails finds its classes loaded.
package dev.comeback.internal

import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.ManualConnectivity
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.driver.CallSession
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.SystemTime

/**
 * Lets a call that nobody has made fail, ask what to do, and be woken. No listener of an app hears of it. Loading the library shows that it can decide; this
 * also loads what stands around a decision, some 50 classes.
 */
internal fun rehearse(core: Core) {
    val hears = RetryListener {}
    Comeback(ManualConnectivity(SystemTime, core), hears, SystemTime, core, seeds = { 0 }).use { comeback ->
        val call = CallSession(comeback, RetryPolicy.READ, null, RequestFacts("GET"))
        call.noteAttempt()
        call.failed(Outcome.failure(FailureKind.RESET))
        call.woken()
        call.cancelled(CancelKind.CALLER)
    }
}
