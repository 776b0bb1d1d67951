// The interceptor's loop: attempt, settle, wait, again, all on the thread that runs the call.
package dev.comeback.okhttp.internal

import dev.comeback.CancelKind
import dev.comeback.NetworkSnapshot
import dev.comeback.NetworkState
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.CallNetwork
import dev.comeback.driver.CallSession
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.NextStep
import dev.comeback.driver.orNull
import dev.comeback.driver.shorter
import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import java.io.Closeable
import java.io.IOException

internal class BlockingLoop(
    private val chain: Interceptor.Chain,
    private val request: Request,
    private val setup: Setup,
    policy: RetryPolicy,
    private val facts: DriverFacts,
    private val layer: CallLayer,
    network: CallNetwork,
    private val began: Long,
    private val code: ClientCode,
) {
    private val comeback = setup.comeback
    private val call = chain.call()
    private val record =
        CallRecord(
            request,
            setup,
            policy,
            facts,
            chain,
            network,
            began,
            clientEnd(call.timeout(), began, comeback.time),
            outlivesCut = false,
            code,
            layer,
            keys = layer::keys,
        )
    private val session = record.session
    private var noted = NetworkSnapshot.UNKNOWN
    private var listener: AttemptListener? = null

    /** What the rest of the chain threw that is no I/O error. It is not ours to judge, and passes as it is. */
    var foreign: Throwable? = null
        private set

    /** [first] is the first attempt, if it was made already; [before] what was known of the network then, [reportsBefore] what [CallSession.reports] gave. */
    fun run(
        before: NetworkSnapshot,
        first: AttemptEnd?,
        reportsBefore: Long,
    ): Response {
        try {
            noted = session.noteAttempt(before, reportsBefore)
            var attemptEnd = first ?: firstAttempt()
            var isFirst = true
            while (true) {
                if (attemptEnd is AttemptEnd.Broke) {
                    if (!isFirst && isOfOpenResponse(attemptEnd.thrown)) throw attemptEnd.thrown
                    foreign = attemptEnd.thrown
                }
                val asleep =
                    when (val settled = record.settled(attemptEnd, isCancelled = attemptEnd !is AttemptEnd.Cut && call.isCanceled())) {
                        is Settled.Delivered -> return settled.response
                        is Settled.Thrown -> throw settled.thrown
                        is Settled.Asleep -> settled
                    }
                val slot = slotFor(asleep) ?: return withoutWait(asleep)
                val last = asleep.closed()
                val next = slot.use { awaited(asleep.sleep) }
                if (next !is NextStep.Go) throw record.ended(next, last)
                attemptEnd = laterAttempt(next.limit.inactivityNanos)
                isFirst = false
            }
        } catch (thrown: Throwable) {
            if (thrown is IOException || thrown === foreign) throw thrown
            // OkHttp lets anything else kill the app.
            throw IOException("Comeback failed", thrown).also {
                orNull {
                    session.stopped(StopReason.Internal)
                    session.attachReportTo(it)
                }
            }
        }
    }

    /** It is left alone, unless something about it can only be known by listening. */
    private fun firstAttempt(): AttemptEnd {
        val isKnownOffline = noted.state == NetworkState.OFFLINE || noted.state == NetworkState.BLOCKED
        if (record.needsListener || isKnownOffline) watch()
        return attempt(null)
    }

    private fun laterAttempt(inactivityNanos: Long?): AttemptEnd {
        noted = session.noteAttempt()
        watch()
        return attempt(inactivityNanos)
    }

    /** An interceptor cannot give up one attempt, so `attempt_timeout` shortens its inactivity timeouts. */
    private fun attempt(inactivityNanos: Long?): AttemptEnd {
        listener?.attemptBegins()
        record.attemptBegins(layer)
        val limited = record.limited(chain, shorter(inactivityNanos, facts.attemptTimeoutNanos), noted.path)
        return makeAttempt(
            limited,
            record.outgoing,
            layer,
            facts,
            code.runsAppsCode,
            cutTimer(call, facts, comeback.time.nanos() - began),
        ) {}
    }

    /**
     * An interceptor put another response in the place of the one it got, and never closed that one. A caller would only lose a connection by it; it
     * is the next attempt that OkHttp refuses to make.
     */
    private fun isOfOpenResponse(thrown: Throwable) =
        thrown is IllegalStateException &&
            thrown.message?.startsWith("cannot make a new request because the previous response is still open") == true

    private fun watch(): AttemptListener =
        listener ?: layer.listener(call).also {
            listener = it
            record.isHeardBy(it)
        }

    /** Null if this call must not sleep here; why, the session knows. Only waits after a status are limited: after other failures a sixth call would fare no better. */
    private fun slotFor(asleep: Settled.Asleep): Closeable? {
        if (!blocks(asleep.sleep)) return WaitingSlots.NONE
        if (setup.hooks.isMainThread()) {
            session.cancelled(CancelKind.MAIN_THREAD)
            return null
        }
        if (asleep.response == null) return WaitingSlots.NONE
        val slot = WaitingSlots.take(call)
        if (slot == null) session.stopped(StopReason.TooManyWaiting)
        return slot
    }

    private fun withoutWait(asleep: Settled.Asleep): Response =
        when (val settled = record.withoutWait(asleep)) {
            is Settled.Delivered -> settled.response
            is Settled.Thrown -> throw settled.thrown
            is Settled.Asleep -> error("a call that must not wait waits")
        }

    private fun blocks(sleep: NextStep.Sleep) = sleep.askAt > comeback.time.nanos()

    private fun awaited(first: NextStep.Sleep): NextStep {
        // Listening first: a cancel before that is seen below, a later one wakes.
        val wakeup = watch().wakeup
        var step: NextStep = first
        try {
            while (step is NextStep.Sleep) {
                if (call.isCanceled()) return session.cancelled(record.cancelKind())
                if (blocks(step) && setup.hooks.isMainThread()) return session.cancelled(CancelKind.MAIN_THREAD)
                session.await(step, wakeup)
                if (call.isCanceled()) return session.cancelled(record.cancelKind())
                step = session.woken()
            }
        } catch (_: InterruptedException) {
            Thread.currentThread().interrupt()
            return session.cancelled(CancelKind.INTERRUPTED)
        }
        return step
    }
}
