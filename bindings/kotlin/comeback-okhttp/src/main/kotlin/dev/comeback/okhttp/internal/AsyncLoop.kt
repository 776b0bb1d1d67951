// The attempts of a factory's call, and its waits, which hold no thread.
package dev.comeback.okhttp.internal

import dev.comeback.CancelKind
import dev.comeback.NetworkSnapshot
import dev.comeback.NetworkState
import dev.comeback.StopReason
import dev.comeback.Subscription
import dev.comeback.driver.CallSession
import dev.comeback.driver.LimitTimer
import dev.comeback.driver.NextStep
import dev.comeback.driver.orNull
import okhttp3.Call
import okhttp3.Interceptor
import okhttp3.Response
import java.io.IOException
import java.util.concurrent.atomic.AtomicBoolean

/** Where a call's attempts run, and where its ending goes. */
internal interface Caller {
    /** It runs on Android's main thread. */
    val mustNotWait: Boolean

    /** An attempt that does not end may be left alone: it runs on a thread that is not the caller's. */
    val mayLeave: Boolean

    fun run(attempt: Attempt)

    /** Once, at the end. [isOnAttempt]: this thread is one that ran an attempt, and no other call waits for it. */
    fun over(
        ending: Ending,
        isOnAttempt: Boolean,
    )
}

/** What the caller gets. */
internal sealed class Ending {
    class Answer(
        val response: Response,
    ) : Ending()

    class Failure(
        val thrown: Throwable,
    ) : Ending()
}

/**
 * One thread at a time has the turn: the one on which an attempt ended, or, after a wait, the one of [dev.comeback.driver.Time.schedule]. It hands the turn on
 * by launching an attempt or beginning a wait, and then lets go. Nothing is locked.
 */
internal class AsyncLoop(
    private val call: FactoryCall,
    private val setup: Setup,
    private val caller: Caller,
) {
    /** Told before anything goes out, if the call is a part of an attempt further out. */
    private val inner = call.outer?.let { outer -> InnerCall(setup, outer, call.asTagged) }
    private val comeback = setup.comeback
    private val time = comeback.time

    /** Null before the first attempt began, and for a call that Comeback does not look after. */
    @Volatile
    var record: CallRecord? = null
        private set

    /** When the client's own timeout ends the call; null: never. */
    @Volatile
    var clientEnd: Long? = null
        private set
    private var isEntered = false

    /** How many attempts. */
    private var launched = 0

    /** The newest attempt, until a wait begins. */
    @Volatile
    var flying: Attempt? = null
        private set

    @Volatile
    private var wait: Wait? = null

    @Volatile
    private var isInterrupted = false

    @Volatile
    private var isTimedOut = false

    /** Whether an attempt that does not end may be left alone. */
    val mayLeave: Boolean get() = caller.mayLeave

    fun launch() {
        val left = clientEnd?.let { (it - time.nanos()).coerceAtLeast(1) }
        val attempt = Attempt(this, setup, call.callForAttempt(++launched, left), launchedAt = if (isEntered) time.nanos() else null)
        call.listenTo(attempt.call) { flying = attempt }
        caller.run(attempt)
    }

    /**
     * The first attempt begins: only now the call does, and whatever the app's hooks and a policy's first use cost is paid by a thread that may block.
     * Null if the call goes as without us.
     */
    @Throws(IOException::class)
    fun entered(chain: Interceptor.Chain): CallRecord? {
        if (isEntered) return record
        isEntered = true
        if (inner != null) return null
        val code = setup.codeOf(chain, AttemptEntry) ?: return null
        val request = asNew(chain.request())
        val policy = setup.policyFor(request)
        val facts = policy.driverFacts
        if (facts == null || comeback.isClosed || asksForUpgrade(request)) return null
        val began = time.nanos()
        clientEnd = clientEnd(call.timeout(), began, time)
        return CallRecord(
            request,
            setup,
            policy,
            facts,
            chain,
            comeback.networkFor(facts, request.url.host),
            began,
            clientEnd,
            outlivesCut = true,
            code,
            CallLayer.of(chain.call()),
            keys = ::IdempotencyKeys,
        ).also { record = it }
    }

    /** The one attempt of a call that goes as without us. */
    fun passed(chain: Interceptor.Chain): Response {
        inner?.goesOut()
        val code = inner?.let { setup.codeOf(chain, AttemptEntry) } ?: return chain.proceed(chain.request())
        return inner.proceed(chain, CallLayer.of(chain.call()), code)
    }

    /** An attempt has ended. [isOnAttempt]: on this thread. */
    fun settle(
        attempt: Attempt,
        attemptEnd: AttemptEnd,
        isOnAttempt: Boolean,
    ) {
        val record = record
        val isCut = attemptEnd is AttemptEnd.Cut || (attemptEnd is AttemptEnd.LeftAlone && attemptEnd.isCut)
        if (attempt.call.isCanceled() && !isCut) call.isCancelledWithin()
        if (record == null) return over(endingOf(attemptEnd), isOnAttempt)
        proceed(record, isOnAttempt) {
            when (val settled = record.settled(attemptEnd, isCancelled = call.isCanceled())) {
                is Settled.Asleep -> {
                    if (caller.mustNotWait && isLater(settled.sleep)) {
                        record.session.cancelled(CancelKind.MAIN_THREAD)
                        endingOf(record.withoutWait(settled))
                    } else {
                        flying = null
                        next(record, settled.sleep, settled.closed())
                    }
                }

                else -> {
                    endingOf(settled)
                }
            }
        }
    }

    /** Goes on from [first]. Null if an attempt or a wait has the turn now. */
    private fun next(
        record: CallRecord,
        first: NextStep,
        last: Last,
    ): Ending? {
        var step = first
        while (step is NextStep.Sleep) {
            val ended = endedBy(record.session)
            if (ended == null && isLater(step)) {
                Wait(record, step, last).begin()
                return null
            }
            step = ended ?: record.session.woken()
        }
        if (step !is NextStep.Go) return Ending.Failure(record.ended(step, last))
        launch()
        return null
    }

    /** What ends the call besides the core. */
    private fun endedBy(session: CallSession): NextStep? =
        when {
            call.isCanceled() -> session.cancelled(CancelKind.CALLER)
            isInterrupted -> session.cancelled(CancelKind.INTERRUPTED)
            isTimedOut -> session.cancelled(CancelKind.CALL_TIMEOUT).also { call.isCancelledWithin() }
            else -> null
        }

    private fun isLater(sleep: NextStep.Sleep) = sleep.askAt > time.nanos()

    /** Whatever goes wrong in [action], the caller hears of an end. What the caller's own callback throws is not ours. */
    private inline fun proceed(
        record: CallRecord,
        isOnAttempt: Boolean,
        action: () -> Ending?,
    ) {
        val ending =
            try {
                action()
            } catch (thrown: Throwable) {
                val failed = IOException("Comeback failed", thrown)
                orNull {
                    record.session.stopped(StopReason.Internal)
                    record.session.attachReportTo(failed)
                }
                Ending.Failure(failed)
            }
        if (ending == null) return
        over(ending, isOnAttempt)
    }

    private fun over(
        ending: Ending,
        isOnAttempt: Boolean,
    ) {
        call.isOver()
        caller.over(ending, isOnAttempt)
    }

    private fun endingOf(settled: Settled): Ending =
        when (settled) {
            is Settled.Delivered -> Ending.Answer(settled.response)
            is Settled.Thrown -> Ending.Failure(settled.thrown)
            is Settled.Asleep -> error("a call that must not wait waits")
        }

    private fun endingOf(attemptEnd: AttemptEnd): Ending =
        when (attemptEnd) {
            is AttemptEnd.Answered -> Ending.Answer(attemptEnd.response)
            is AttemptEnd.Failed -> Ending.Failure(attemptEnd.exception)
            is AttemptEnd.Broke -> Ending.Failure(attemptEnd.thrown)
            is AttemptEnd.Cut, is AttemptEnd.LeftAlone -> error("a call without limits was cut")
        }

    /** The client's timeout ends neither this call any more, nor the attempt in flight and what is read of its answer. */
    fun endTimeout() {
        clientEnd = null
        flying?.endTimeout()
        wait?.endTimeout()
    }

    /** The call was cancelled. */
    fun endWait() {
        wait?.endSoon()
    }

    /** The thread that executes the call was interrupted while it had nothing to do. */
    fun interrupt() {
        isInterrupted = true
        wait?.endSoon()
    }

    /** Ended by its time, an edge, the end of Comeback, a cancel or an interrupt, whichever is first. */
    private inner class Wait(
        private val record: CallRecord,
        private val sleep: NextStep.Sleep,
        private val last: Last,
    ) {
        private val isOver = AtomicBoolean()

        /** The client's own timeout, by a real clock as the client measures it. */
        private val callTimeout =
            if (clientEnd == null) {
                null
            } else {
                object : LimitTimer() {
                    override fun reached() {
                        isTimedOut = true
                        endSoon()
                    }
                }
            }

        @Volatile
        private var isEnding = false

        @Volatile
        private var hasBegun = false

        @Volatile
        private var changes: Subscription? = null

        @Volatile
        private var timer: Subscription? = null

        fun begin() {
            wait = this
            val subscribed = record.session.wakeEarly(sleep, ::endSoon)
            changes = subscribed
            // A cancel that came before is seen here, a later one ends the wait.
            if (call.isCanceled() || isInterrupted) endSoon()
            clientEnd?.let { callTimeout?.start(it - time.nanos()) }
            if (!isEnding) timer = time.schedule(sleep.askAt, ::end)
            // From here on another thread may have the turn.
            hasBegun = true
        }

        /** Not on this thread: the one that tells of the network has others to tell, and the one that cancels may be the app's main thread. */
        fun endSoon() {
            isEnding = true
            setup.endedWaits.add(::end)
        }

        fun endTimeout() {
            callTimeout?.stop()
        }

        private fun stopListening() {
            changes?.close()
            timer?.close()
            callTimeout?.stop()
        }

        fun end() {
            // A thread that was held up in the middle of it leaves something to stop: soon, then.
            if (!hasBegun) return endSoon()
            if (!isOver.compareAndSet(false, true)) return
            wait = null
            stopListening()
            proceed(record, isOnAttempt = false) { next(record, endedBy(record.session) ?: record.session.woken(), last) }
        }
    }
}

/** Whether the network changed under an attempt that began at [noted], and there is one now. */
internal fun hasMovedOn(
    noted: NetworkSnapshot,
    now: NetworkSnapshot,
): Boolean = now.path > noted.path && now.state != NetworkState.OFFLINE && now.state != NetworkState.BLOCKED
