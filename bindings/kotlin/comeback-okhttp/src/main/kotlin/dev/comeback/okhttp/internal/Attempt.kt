// One attempt of a factory's call: a call of the client's, which can be given up without the whole.
package dev.comeback.okhttp.internal

import dev.comeback.NetworkSnapshot
import dev.comeback.Subscription
import dev.comeback.driver.LimitTimer
import dev.comeback.driver.NextStep
import dev.comeback.driver.okhttp.NotResentException
import dev.comeback.driver.okhttp.OwnInterceptor
import dev.comeback.driver.okhttp.asThrown
import dev.comeback.driver.orNull
import dev.comeback.okhttp.attemptNumber
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Interceptor
import okhttp3.Response
import java.io.IOException
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicReference

/**
 * Between its first interceptor and its last it is under way. Then two threads may have a word on it: the one that runs it says how it ended, and the
 * one of [dev.comeback.driver.Time.schedule] may ask whether to give it up. Neither waits for the other: who is late leaves the rest to the other.
 *
 * @param launchedAt when an attempt that is not the first was told to go: its limits count from then
 */
internal class Attempt(
    private val loop: AsyncLoop,
    private val setup: Setup,
    val call: Call,
    private val launchedAt: Long?,
) : Callback {
    private val comeback = setup.comeback
    private val time = comeback.time
    private val listener = AttemptListener()

    /** FREE, ASKING, ENDED or GIVEN_UP; or, left by the thread that ran it to the one that is asking, how it ended. */
    private val turn = AtomicReference<Any>(FREE)

    /**
     * Where the request is: QUEUED, OUTSIDE the client's own layer, INSIDE it, connecting perhaps, SHOWN to network interceptors of the app's that might send it
     * by other clients, or SENT; CLOSED, and it never goes out.
     */
    private val exit = AtomicInteger(QUEUED)

    private var began = 0L
    private var noted = NetworkSnapshot.UNKNOWN
    private var changes: Subscription? = null

    @Volatile
    private var nextQuestion: Subscription? = null

    /** How it left the first interceptor. Null: it has not, or is not limited. */
    @Volatile
    private var left: AttemptEnd? = null

    init {
        try {
            call.tag(TYPE) { this }
        } catch (problem: LinkageError) {
            setup.isUnsupported(problem)
        }
    }

    fun enqueue() {
        // A later attempt's limits count from here: it may have to queue, behind attempts that do not end perhaps.
        if (launchedAt != null) startLimits()
        call.enqueue(this)
    }

    fun execute() {
        if (launchedAt != null) startLimits()
        val attemptEnd =
            try {
                AttemptEnd.Answered(call.execute())
            } catch (thrown: Throwable) {
                endOf(thrown)
            }
        end(attemptEnd)
    }

    override fun onResponse(
        call: Call,
        response: Response,
    ): Unit = end(AttemptEnd.Answered(response))

    override fun onFailure(
        call: Call,
        e: IOException,
    ): Unit = end(endOf(e))

    private fun endOf(thrown: Throwable): AttemptEnd {
        val left = left
        return when {
            // OkHttp may have put it into other words since.
            left is AttemptEnd.Cut || left is AttemptEnd.Broke -> left

            // Refused by a dispatcher whose executor is shut down: nothing will change that.
            exit.get() == QUEUED && launchedAt != null -> AttemptEnd.Broke(thrown)

            thrown is IOException -> AttemptEnd.Failed(thrown)

            else -> AttemptEnd.Broke(thrown)
        }
    }

    /** The first interceptor. */
    fun proceed(chain: Interceptor.Chain): Response {
        val record =
            try {
                loop.entered(chain)?.also(::enter)
            } catch (thrown: Throwable) {
                // OkHttp lets anything else kill the app.
                throw thrown as? IOException ?: IOException("Comeback failed", thrown)
            }
        if (record == null) return loop.passed(chain)
        val limit = record.session.limit
        if (launchedAt == null) startLimits()
        val attemptEnd =
            makeAttempt(
                record.limited(chain, limit.inactivityNanos, noted.path),
                numbered(record.outgoing, call.request().attemptNumber),
                CallLayer.of(call),
                record.facts,
                record.code.runsAppsCode,
                cutTimer,
            ) {
            }
        left = attemptEnd
        stopLeaving()
        return when (attemptEnd) {
            is AttemptEnd.Answered -> {
                attemptEnd.response
            }

            is AttemptEnd.Failed -> {
                throw attemptEnd.exception
            }

            is AttemptEnd.Broke -> {
                throw attemptEnd.thrown
            }

            is AttemptEnd.Cut -> {
                attemptEnd.response?.let { orNull { it.close() } }
                throw attemptEnd.exception ?: IOException("Canceled")
            }

            is AttemptEnd.LeftAlone -> {
                error("an attempt that ended was left alone")
            }
        }
    }

    /** Unless it was left in the queue. */
    @Synchronized
    private fun enter(record: CallRecord) {
        if (!exit.compareAndSet(QUEUED, OUTSIDE)) throw IOException("Canceled")
        begin(record)
    }

    private var cutTimer: CutTimer? = null

    @Volatile
    private var leavings: List<LeaveTimer> = emptyList()

    /** The attempt ends some time after its limit, whether OkHttp comes back or not. */
    private inner class LeaveTimer(
        val isCut: Boolean,
    ) : LimitTimer() {
        override fun reached() = setup.endedWaits.add { leave(isCut) }
    }

    private fun startLimits() {
        val record = loop.record ?: return
        val now = time.nanos()
        record.session.limit.hardNanos?.let { hard ->
            val left = hard - (now - (launchedAt ?: began))
            cutTimer = CutTimer(call).apply { start(left) }
            leaveIn(left, isCut = true)
        }
        loop.clientEnd?.let { leaveIn(it - now, isCut = false) }
    }

    private fun leaveIn(
        nanos: Long,
        isCut: Boolean,
    ) {
        if (!loop.mayLeave) return
        val timer = LeaveTimer(isCut)
        synchronized(this) { leavings = leavings + timer }
        timer.start(nanos.coerceAtLeast(0) + PATIENCE_NANOS)
    }

    /** The call was cancelled, and with it this attempt. */
    fun leaveSoon() {
        if (left == null && loop.record != null) leaveIn(0, isCut = false)
    }

    private fun stopLeaving() {
        for (timer in leavings) timer.stop()
    }

    /** The client's timeout does not end the call any more. */
    fun endTimeout() {
        call.timeout().apply {
            cancel()
            // It may not have begun.
            clearTimeout().clearDeadline()
        }
        leavings.forEach { if (!it.isCut) it.stop() }
    }

    /**
     * The attempt should have ended. From here on nothing of it goes out. If it has not gone out before, that is proof; else it may have arrived. Nobody
     * waits for it: it holds its slot of the dispatcher until it comes back, so that no more than those can be left.
     */
    private fun leave(isCut: Boolean) {
        val record = loop.record
        if (record == null || left != null) return
        val before =
            synchronized(this) {
                exit.getAndSet(CLOSED).also { if (it == QUEUED) begin(record) }
            }
        end(
            AttemptEnd.LeftAlone(isCut, sentNothing = before < SHOWN, ranNothing = before == QUEUED),
            isOnAttempt = false,
        )
    }

    private fun begin(record: CallRecord) {
        val layer = CallLayer.of(call)
        layer.enter()
        record.attemptBegins(layer)
        call.addEventListener(listener)
        record.isHeardBy(listener)
        began = time.nanos()
        noted = record.session.noteAttempt()
        changes = comeback.subscribe(::onChange)
        // A change in between is not missed.
        onChange()
    }

    /** Beyond the app's interceptors, which might send things by other clients. Only here it is known that nothing was sent. */
    fun entersClient() {
        exit.compareAndSet(OUTSIDE, INSIDE)
    }

    fun leavesClient() {
        exit.compareAndSet(INSIDE, OUTSIDE)
    }

    /** It comes to the network interceptors. False if the attempt was given up before: then it may not. */
    fun isShown(): Boolean = loop.record?.mayNetworkInterceptorsSend != true || exit.compareAndSet(INSIDE, SHOWN) || exit.get() != CLOSED

    /** False if the attempt was given up before it went out: then it may not. */
    fun goesOut(): Boolean = exit.compareAndSet(INSIDE, SENT) || exit.compareAndSet(SHOWN, SENT) || exit.get() != CLOSED

    /** On the thread that tells of the network, which has others to tell. */
    private fun onChange() {
        if (hasMovedOn(noted, loop.record?.network?.snapshot ?: noted)) ask(at = Long.MIN_VALUE)
    }

    private fun ask(at: Long) {
        nextQuestion = time.schedule(at, ::ask)
    }

    private fun ask() {
        val record = loop.record ?: return
        // With a response head it is no longer under way.
        if (left != null) return
        if (!turn.compareAndSet(FREE, ASKING)) {
            // Another thread is asking, perhaps about a network that has changed again since.
            if (turn.get() === ASKING) ask(at = time.nanos() + ASK_AGAIN_NANOS)
            return
        }
        val isGivenUp = orNull { isGivenUp(record) } ?: false
        if (turn.compareAndSet(ASKING, if (isGivenUp) GIVEN_UP else FREE)) {
            if (!isGivenUp) return
            stopListening()
            call.cancel()
            loop.launch()
        } else {
            // It ended meanwhile. A response is as good as the one that the new attempt would bring.
            val ended = turn.getAndSet(ENDED) as AttemptEnd
            if (isGivenUp && ended !is AttemptEnd.Answered) loop.launch() else loop.settle(this, ended, isOnAttempt = false)
        }
    }

    private fun isGivenUp(record: CallRecord): Boolean {
        val where = exit.get()
        val sentNothing = where == INSIDE && !record.mayBeSentElsewhere
        val outer = record.outer
        when (val step = record.session.interrupted(sentNothing, record.isBodyUntouched, outer = outer)) {
            is NextStep.Restart -> {
                if (exit.compareAndSet(where, CLOSED)) return true
                // It went out in between, and may be one that must not go twice: so it is what the core takes for the new attempt.
                outer.unseal()
                ask(at = time.nanos())
            }

            is NextStep.Keep -> {
                step.askAt?.let(::ask)
            }

            else -> {
                // The call is over, and hears of it when this attempt ends.
            }
        }
        return false
    }

    private fun end(
        attemptEnd: AttemptEnd,
        isOnAttempt: Boolean = true,
    ) {
        stopListening()
        while (true) {
            when (turn.get()) {
                FREE -> {
                    if (!turn.compareAndSet(FREE, ENDED)) continue
                    if (attemptEnd is AttemptEnd.LeftAlone) call.cancel()
                    return loop.settle(this, attemptEnd, isOnAttempt)
                }

                ASKING -> {
                    if (!turn.compareAndSet(ASKING, attemptEnd)) continue
                    if (attemptEnd is AttemptEnd.LeftAlone) call.cancel()
                    return
                }

                else -> {
                    // Given up: another attempt is under way in its stead.
                    if (attemptEnd is AttemptEnd.Answered) orNull { attemptEnd.response.close() }
                    return
                }
            }
        }
    }

    private fun stopListening() {
        changes?.close()
        nextQuestion?.close()
        cutTimer?.stop()
        stopLeaving()
    }

    companion object {
        private val FREE = Any()
        private val ASKING = Any()
        private val ENDED = Any()
        private val GIVEN_UP = Any()

        private const val QUEUED = 0
        private const val OUTSIDE = 1
        private const val INSIDE = 2

        // From here on something may have been sent.
        private const val SHOWN = 3
        private const val SENT = 4
        private const val CLOSED = 5

        private const val ASK_AGAIN_NANOS = 1_000_000L

        /** How long after its cancel an attempt may take to end, before it is left. With two looks of the clock less than 100 ms. */
        private const val PATIENCE_NANOS = 20_000_000L

        /** Made once: each `::class` is an object. */
        private val TYPE = Attempt::class

        /** Null if [call] is no attempt, or OkHttp is too old for one. */
        fun of(call: Call): Attempt? =
            try {
                call.tag(TYPE)
            } catch (_: LinkageError) {
                null
            }
    }
}

/** Where an attempt begins to run: before all interceptors of the app's. */
internal object AttemptEntry : OwnInterceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val attempt = Attempt.of(chain.call()) ?: return chain.proceed(chain.request())
        return attempt.proceed(chain)
    }
}

/** Where it enters the client's own layer: after all of them. */
internal object ClientEntry : OwnInterceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val attempt = Attempt.of(chain.call()) ?: return chain.proceed(chain.request())
        attempt.entersClient()
        try {
            return CallLayer.of(chain.call()).asSent(chain.proceed(chain.request()))
        } catch (notResent: NotResentException) {
            throw notResent.asThrown()
        } finally {
            attempt.leavesClient()
        }
    }
}

/** Where a request goes out: after the app's network interceptors, connected and not yet written. */
internal object AttemptExit : OwnInterceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        pass(chain)
        return chain.proceed(chain.request())
    }

    @Throws(IOException::class)
    fun pass(chain: Interceptor.Chain) {
        if (Attempt.of(chain.call())?.goesOut() == false) throw IOException("Canceled")
    }

    /** Before the app's network interceptors. */
    @Throws(IOException::class)
    fun approach(chain: Interceptor.Chain) {
        if (Attempt.of(chain.call())?.isShown() == false) throw IOException("Canceled")
    }
}
