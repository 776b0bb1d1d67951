// One call from its driver's side: it asks the core, keeps the call's state, tells the events and folds the report.
package dev.comeback.driver

import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.ComebackUnavailableException
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.StopReason
import dev.comeback.Subscription
import dev.comeback.attachReport
import dev.comeback.ffi.Answer
import dev.comeback.ffi.AnswerKind
import dev.comeback.ffi.BeginInput
import dev.comeback.ffi.InterruptInput
import dev.comeback.ffi.ResumeInput
import dev.comeback.forbidsRepetitionSince
import dev.comeback.internal.Core
import dev.comeback.internal.Events
import dev.comeback.internal.Wait
import dev.comeback.internal.endsTheVirtualMachine
import dev.comeback.internal.reason
import dev.comeback.internal.tellEvents
import dev.comeback.internal.toCore
import dev.comeback.internal.toEvent
import dev.comeback.refusedToRepeat
import dev.comeback.reportsAttached

/**
 * One call of an adapter. It computes no rule: the core decides, this obeys and tells.
 *
 * An adapter makes one when it is entered, unless the policy is off ([RetryPolicy.driverFacts] is null) or the [Comeback] is closed. Then, per
 * attempt: [noteAttempt], the attempt, and either [succeeded] or [failed]; after a [NextStep.Sleep] it waits ([await]) and asks [woken]; after a
 * [NextStep.Go] or [NextStep.Restart] it starts over at [noteAttempt]. It reports what only an adapter sees (cancel, interrupt, the client's own
 * timeout) by [cancelled], and anything else that ends the call by [stopped].
 *
 * No method throws, unless memory is out. Whatever is wrong with the core or its library becomes `Stop(Internal)`. Once a method has answered
 * [NextStep.Deliver] or [NextStep.Stop] every other answers the same, and nothing more is told. Up to the first failure no native call is made, and
 * nothing but this is allocated unless there is a listener. One thread at a time drives a call; only [cancelled] and [stopped] may race it.
 *
 * @param began when the adapter was entered; instants are [Time.nanos]
 * @param clientEnd the instant at which the client's own timeout ends the whole call; null: never
 * @param network the network as this call knows it; an adapter that knows the host asks [Comeback.networkFor] with it
 * @param seed what the call's waits are drawn from; null: what [Comeback.Builder.seeds] gives, or the operating system
 * @suppress
 */
@InternalComebackApi
public class CallSession(
    private val comeback: Comeback,
    private val policy: RetryPolicy,
    private val label: String?,
    private val facts: RequestFacts,
    public val began: Long = comeback.time.nanos(),
    private val clientEnd: Long? = null,
    private val seed: Long? = null,
    internal val network: CallNetwork = comeback.networkFor(policy.driverFacts, host = null),
) {
    @Volatile
    private var latest = began

    /** The network's snapshot when the attempt in flight began. */
    public var noted: NetworkSnapshot = NetworkSnapshot.UNKNOWN
        private set
    private var counted = 0

    /** Whether an attempt that has ended may have reached the server. */
    private var mayHaveArrived = false

    /** Whether an attempt is in flight, or has ended and is not judged yet. */
    @Volatile
    private var isAttempting = false

    /** Whether it is proved that this attempt sent nothing. */
    @Volatile
    private var hasSentNothing = false

    /** What was attached when the attempt in flight began. */
    private var reportsBefore = 0L

    /** The call's state in the core: null before the first failure, and while it waits. */
    private var call: ByteArray? = null

    /** The same while it waits. */
    @Volatile
    private var waiting: ByteArray? = null

    /** The core's answer to the wait that is going on, if it was asked together with other calls' waits. */
    @Volatile
    private var ahead: Ahead? = null
    private var begun = false

    private var id = 0L

    /** Null before the first. */
    @Volatile
    private var events: Events? = null
    private var failures: ArrayList<Throwable>? = null

    /** The last answer there will be. */
    @Volatile
    private var end: NextStep? = null

    /** What the next attempt may take. */
    public var limit: Limit = policy.driverFacts?.firstLimit(began, clientEnd) ?: Limit.NONE
        private set

    /** What was tried. Null while the call is not over, and if its first attempt's answer was delivered. */
    public val report: RetryReport?
        get() {
            if (end == null) return null
            val report = RetryReport.of(events?.toList() ?: return null)
            return report.takeIf { it.reason != null || it.attempts.isNotEmpty() || it.abandoned > 0 }
        }

    /**
     * An attempt begins. No change of the network from here on is missed when it fails. Returns the snapshot that was noted.
     *
     * @param reportsBefore what [reports] gave when it began
     */
    public fun noteAttempt(
        snapshot: NetworkSnapshot = network.snapshot,
        reportsBefore: Long = reports,
    ): NetworkSnapshot {
        noted = snapshot
        this.reportsBefore = reportsBefore
        isAttempting = true
        hasSentNothing = false
        return noted
    }

    /** The attempt brought a response below 400, which the app's own `classify` does not overrule. The call is over. */
    public fun succeeded() {
        finish(NextStep.Deliver) {
            val isHeard = comeback.listener != null || events != null
            if (isHeard) RetryEvent.Finished(callId(), label, null, counted + 1, elapsed(), mayHaveArrived = true) else null
        }
    }

    /**
     * The attempt brought anything else.
     *
     * @param outer the attempt as layers further in see it. Its requests are taken into account. What of it goes on makes none any more that must not be repeated,
     * if there may be another attempt, or if the caller is told that nothing has arrived
     */
    public fun failed(
        outcome: Outcome,
        outer: OuterAttempt? = null,
    ): NextStep {
        val known = outcome.inner + refusedFurtherIn(outcome.exception)
        // Until the core has judged it.
        isAttempting = true
        hasSentNothing = outcome.sentNothing
        outcome.exception?.let { thrown -> failures = (failures ?: ArrayList()).apply { add(thrown) } }
        return ask { core, policyBytes, network ->
            val call = callInFlight(core)
            withRequestsOf(outer, seals = {
                it.kind == AnswerKind.SLEEP ||
                    (it.kind == AnswerKind.STOP && !mayHaveArrived && !it.mayHaveArrived)
            }) { told ->
                core.decide(outcome.toCore(policyBytes, call, facts.head, known + told, noted, now(), comeback.time.wallMillis(), network))
            }
        }
    }

    private fun withRequestsOf(
        outer: OuterAttempt?,
        seals: (Answer) -> Boolean,
        question: (List<InnerRequest>) -> Answer,
    ): Answer {
        val acting = policy.driverFacts
        return if (outer == null || acting == null) question(emptyList()) else outer.sealing(acting, question, seals)
    }

    /**
     * A layer further in that did not know of this call, for instance because its own ran on another thread, gave up a request that must not be repeated: then
     * this call must not be repeated either.
     */
    private fun refusedFurtherIn(thrown: Throwable?): List<InnerRequest> {
        if (thrown?.forbidsRepetitionSince(reportsBefore) != true) return emptyList()
        return listOf(OuterAttempt().request(null, RequestHead("POST"), keyIsMade = false))
    }

    /** A wait is over, or may be. Asking early or twice does no harm. */
    public fun woken(): NextStep {
        if (comeback.isClosed) return cancelled(CancelKind.CLOSED)
        now()
        val ahead = ahead
        val newest = network.snapshot
        if (ahead != null && end == null && ahead.question.waiting === waiting && ahead.question.isAbout(newest)) {
            return obey(ahead.answer, newest)
        }
        return ask { core, _, network -> core.resume(listOf(checkNotNull(question(network)) { "no wait is going on" })).single() }
    }

    /** The question for the core about the wait that is going on; null without a wait. May be called by a thread that does not drive this call. */
    internal fun question(network: NetworkSnapshot = this.network.snapshot): ResumeInput? {
        return ResumeInput(
            policy = policy.compiled?.bytes ?: return null,
            waiting = waiting ?: return null,
            now = maxOf(latest, comeback.time.nanos()),
            network = network.toCore(),
        )
    }

    /** Keeps the core's [answer] to [question]. [woken] obeys it if that is still the question then. */
    internal fun answeredAhead(
        question: ResumeInput,
        answer: Answer,
    ) {
        ahead = Ahead(question, answer)
    }

    /**
     * For adapters that can give up one attempt: it is in flight without a response head, and [NetworkSnapshot.path] has grown since [noteAttempt].
     *
     * @param sentNothing whether it is known that nothing of the request was sent
     * @param bodyUntouched whether it is known that nothing of its body was handed out
     * @param inner what else was sent for it
     * @param outer the attempt as layers further in see it, as for [failed]. After a [NextStep.Restart] it makes no request any more that must not be repeated
     */
    public fun interrupted(
        sentNothing: Boolean,
        bodyUntouched: Boolean,
        inner: List<InnerRequest> = emptyList(),
        outer: OuterAttempt? = null,
    ): NextStep =
        ask { core, policyBytes, network ->
            val call = callInFlight(core)
            withRequestsOf(outer, seals = { it.kind == AnswerKind.RESTART }) { told ->
                core.interrupt(
                    InterruptInput(
                        policy = policyBytes,
                        call = call,
                        noted = noted.toCore(),
                        now = now(),
                        network = network.toCore(),
                        sentNothing = sentNothing,
                        bodyUntouched = bodyUntouched,
                        inner = (inner + told).map { it.toCore() },
                    ),
                )
            }
        }

    /** Someone ended the call. [sentNothing]: it is proved that the attempt in flight, if there is one, sent nothing. */
    public fun cancelled(
        kind: CancelKind,
        sentNothing: Boolean = false,
    ): NextStep = stopped(StopReason.Cancelled(kind), sentNothing)

    /**
     * The adapter ends the call.
     *
     * @param sentNothing it is proved that the attempt in flight, if there is one, sent nothing
     * @param othersSent something else of the call may have arrived, of which the core does not know
     */
    public fun stopped(
        reason: StopReason,
        sentNothing: Boolean = false,
        othersSent: Boolean = false,
    ): NextStep {
        val arrived = mayHaveArrived || othersSent || (isAttempting && !sentNothing && !hasSentNothing)
        // The attempt was made, whatever kept the core from judging it. Who cancels a call, on the other hand, does not wait for the attempt to end.
        val attempts = if (isAttempting && reason == StopReason.Internal) counted + 1 else counted
        finish(NextStep.Stop(reason)) { RetryEvent.Finished(callId(), label, reason, attempts, elapsed(), arrived) }
        return checkNotNull(end)
    }

    /**
     * Blocks as [sleep] says: until its time, an edge, [Comeback.close] or a [wakeup] by the adapter, for instance at a cancel. Then ask [woken].
     * One wakeup may serve all waits of a call.
     *
     * @throws InterruptedException if the thread is interrupted
     */
    @Throws(InterruptedException::class)
    public fun await(
        sleep: NextStep.Sleep,
        wakeup: Wakeup,
    ) {
        val subscription = wakeEarly(sleep, wakeup::wake)
        try {
            comeback.time.await(wakeup, sleep.askAt)
        } finally {
            subscription.close()
        }
    }

    /**
     * For drivers that wait without a thread: calls [wake] when [sleep] may be over before its time, by an edge or [Comeback.close]; at once if it is
     * already. Then ask [woken]. It may be called more than once, on any thread, until the subscription is closed; it must be quick.
     */
    public fun wakeEarly(
        sleep: NextStep.Sleep,
        wake: () -> Unit,
    ): Subscription = comeback.waits.begin(Wait(this, sleep, wake))

    /** Attaches [report] and the failures of earlier attempts to the exception this call ends with. */
    public fun attachReportTo(thrown: Throwable) {
        report?.let { attachReport(it, thrown, failures.orEmpty(), it.mayHaveArrived && !mayBeRepeatedOutside(it)) }
    }

    /** Whether a layer further out that knows of this call by its exception alone may repeat it. */
    private fun mayBeRepeatedOutside(report: RetryReport): Boolean =
        !report.refusedToRepeat &&
            !facts.keyIsMade &&
            policy.driverFacts?.mayRepeat(facts.head) != false

    private inline fun ask(question: (Core, policyBytes: ByteArray, NetworkSnapshot) -> Answer): NextStep {
        end?.let { return it }
        val network = network.snapshot
        val answer =
            try {
                question(comeback.core, checkNotNull(policy.compiled) { "the policy is off" }.bytes, network)
            } catch (unavailable: ComebackUnavailableException) {
                comeback.reportUnavailable(unavailable)
                return stopped(StopReason.Internal)
            } catch (thrown: Throwable) {
                if (thrown.endsTheVirtualMachine()) throw thrown
                return stopped(StopReason.Internal)
            }
        return obey(answer, network)
    }

    /** The call's state while an attempt is in flight; the first time the call begins in the core. */
    private fun callInFlight(core: Core): ByteArray {
        if (!begun) {
            begun = true
            return core.begin(
                BeginInput(
                    head = facts.head.toCore(),
                    hasBody = facts.hasBody,
                    bodyReplayable = facts.bodyReplayable,
                    seed = seed ?: comeback.seeds?.invoke(),
                    began = began,
                    clientEnd = clientEnd,
                ),
            )
        }
        return checkNotNull(call) { "no attempt is in flight" }
    }

    private fun obey(
        answer: Answer,
        seen: NetworkSnapshot,
    ): NextStep {
        counted = answer.counted
        mayHaveArrived = mayHaveArrived || answer.mayHaveArrived
        isAttempting = answer.kind == AnswerKind.KEEP
        call = null
        waiting = null
        ahead = null
        val step =
            when (answer.kind) {
                AnswerKind.DELIVER -> {
                    NextStep.Deliver
                }

                AnswerKind.STOP -> {
                    NextStep.Stop(answer.end?.reason() ?: StopReason.Internal)
                }

                AnswerKind.SLEEP -> {
                    waiting = answer.state
                    NextStep.Sleep(answer.askAt ?: latest, seen)
                }

                AnswerKind.GO -> {
                    call = answer.state
                    limit = Limit.of(answer.hard, answer.inactivity)
                    NextStep.Go(limit)
                }

                AnswerKind.KEEP -> {
                    call = answer.state
                    NextStep.Keep(answer.askAt)
                }

                AnswerKind.RESTART -> {
                    call = answer.state
                    limit = Limit.of(answer.hard, answer.inactivity)
                    NextStep.Restart(limit)
                }
            }
        answer.tellEvents(::callId, label, ::tell)
        if (step is NextStep.Deliver || step is NextStep.Stop) finish(step) { answer.end?.toEvent(callId(), label) }
        return end ?: step
    }

    /** Ends the call, unless it is over already: [step] becomes its last answer and [last] gives its last event. Both become visible at once. */
    private inline fun finish(
        step: NextStep,
        last: () -> RetryEvent.Finished?,
    ) {
        synchronized(this) {
            if (end != null) return
            last()?.let(::add)
            end = step
        }
        events?.tell()
    }

    private fun tell(event: RetryEvent) {
        synchronized(this) {
            // A cancel that came in between has had the last word.
            if (end != null) return
            add(event)
        }
        events?.tell()
    }

    private fun add(event: RetryEvent) {
        (events ?: Events(comeback, lock = this).also { events = it }).add(event)
    }

    /** If several threads race, the first one makes it. */
    @Synchronized
    private fun callId(): Long {
        if (id == 0L) id = comeback.nextCallId()
        return id
    }

    /**
     * The driver's timer has reached [instant], so the call is at least that late, whatever its clock says: a test's scheduler may be ahead of the clock.
     * Otherwise a wait whose timer has ended could begin again for ever.
     */
    public fun reached(instant: Long) {
        latest = maxOf(latest, instant)
    }

    /** The instant the call is at. Inside a call time never runs backwards. */
    public fun now(): Long {
        latest = maxOf(latest, comeback.time.nanos())
        return latest
    }

    private fun elapsed(): Long = nanosUntil(now(), began)

    /** @suppress */
    @InternalComebackApi
    public companion object {
        /** How many reports were attached to exceptions so far, in this process. */
        public val reports: Long get() = reportsAttached.get()
    }
}

private fun ResumeInput.isAbout(newest: NetworkSnapshot) = network.epoch == newest.epoch && network.since == newest.since

private class Ahead(
    val question: ResumeInput,
    val answer: Answer,
)
