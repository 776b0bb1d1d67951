// One call as interceptor and call factory have it in common: what goes out, what came back, and what the caller gets.
package dev.comeback.okhttp.internal

import dev.comeback.CancelKind
import dev.comeback.FailureKind
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import dev.comeback.driver.CallNetwork
import dev.comeback.driver.CallSession
import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.Promise
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.RequestHead
import dev.comeback.driver.Time
import dev.comeback.driver.okhttp.limitedTo
import dev.comeback.driver.orNull
import dev.comeback.driver.promise
import okhttp3.Dns
import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import okio.Timeout
import java.io.IOException
import java.io.InterruptedIOException

/**
 * It attempts nothing and waits for nothing: a driver does. It knows no rule either: the core, asked through the [session], has them all.
 *
 * @param network as this call knows it
 * @param clientEnd the instant at which the client's own timeout ends the call; null: never
 * @param outlivesCut whether an attempt that was cut off may be followed by another
 * @param layer of the call of the attempt
 */
internal class CallRecord(
    request: Request,
    private val setup: Setup,
    private val policy: RetryPolicy,
    val facts: DriverFacts,
    chain: Interceptor.Chain,
    val network: CallNetwork,
    began: Long,
    private val clientEnd: Long?,
    private val outlivesCut: Boolean,
    val code: ClientCode,
    private var layer: CallLayer,
    keys: () -> IdempotencyKeys,
) {
    private val call = chain.call()
    private val dns = AttemptDns.resolverOf(chain.dns)
    private val comeback = setup.comeback
    private val hooks = setup.hooks

    /** The app's request, with its key. */
    private val request = withKey(request, facts, keys)
    private val head = headOf(this.request, facts)

    /** The key that ends with this call, and does not belong to another that is still under way. */
    private val ownKey = this.request.tag(MadeKey::class.java)?.takeIf { this.request !== request || !it.isUnderWay }

    val session =
        CallSession(
            comeback,
            policy,
            label = if (comeback.hasListener) hooks.label(this.request) else null,
            facts =
                RequestFacts(
                    head = head,
                    hasBody = request.body != null,
                    bodyReplayable = request.body?.isReplayable() ?: true,
                    keyIsMade = this.request !== request,
                ),
            began = began,
            clientEnd = clientEnd,
            network = network,
        )

    private var listener: AttemptListener? = null

    /** Of the connections that the latest attempt could begin on. */
    private var age: ConnectionAge? = null

    /** A name was not found. */
    private var asksAgain = false

    /** The request as it goes out. */
    val outgoing: Request get() = request

    /** Whether something about the request can only be known by listening. */
    val needsListener: Boolean get() = request.body != null || !facts.mayRepeat(head)

    /** On its own, after the request began to go out. */
    private val clientMayResend: Boolean get() = !facts.clientResendsOff && facts.mayRepeat(head)

    /** Nothing of the body was handed out, and it is known. */
    val isBodyUntouched: Boolean
        get() = !hasForeignFurtherIn && !wasBodyAskedFor && listener?.wasBodyAskedFor == false && !wasBodyShown

    /** The request came as far as network interceptors of the app's, which may read bodies too. */
    private val wasBodyShown: Boolean get() = layer.lastOut != null && code.hasForeignNetworkInterceptors

    private var wasBodyAskedFor = false

    /** They may read the body, or use another client. */
    private val hasForeignFurtherIn get() = code.hasForeignFurtherIn

    /** Whether the request may have been sent by a client that nobody here hears. */
    val mayBeSentElsewhere: Boolean get() = code.mayBeSentElsewhere(layer, hooks)

    /** Whether the app's network interceptors may send it by such a client. */
    val mayNetworkInterceptorsSend: Boolean get() = code.mayNetworkInterceptorsSend && !hooks.onlyThisClientSends

    private val replay = request.body?.takeIf { it.isReplayable() }?.let(::Replay)

    /** The attempt as layers further in see it. */
    val outer: OuterAttempt get() = layer.attempt()

    /** An attempt begins; [layer] is its call's. */
    fun attemptBegins(layer: CallLayer) {
        this.layer = layer
        replay?.attemptBegins()
        layer.replay = replay
        layer.attemptBegins(outer = null)
        if (asksAgain) layer.lookUpAgain = setup.lookUpAgain
    }

    /** From the next attempt on [listener] hears the events. */
    fun isHeardBy(listener: AttemptListener) {
        if (this.listener === listener) return
        if (this.listener?.wasBodyAskedFor == true || wasBodyShown) wasBodyAskedFor = true
        this.listener = listener
    }

    /** [chain] for an attempt on [path], within its limits. */
    fun limited(
        chain: Interceptor.Chain,
        inactivityNanos: Long?,
        path: Long,
    ): Interceptor.Chain {
        var limited = chain.limitedTo(inactivityNanos, facts.connectTimeoutNanos)
        layer.resends = code.resends(clientMayResend || !chain.retryOnConnectionFailure, hooks)
        age = setup.connections.ageFor(request.url, path)
        limited = setup.connections.limited(limited, age)
        // OkHttp itself has no timeout for it.
        val dns = limited.dns
        return if (inactivityNanos != null && dns is AttemptDns) limited.withDns(dns.within(inactivityNanos)) else limited
    }

    /** Time ended the attempt. If it had a connection, that one may be dead, and others of its origin with it. */
    private fun isOutOfTime() {
        val last = layer.lastOut ?: return
        setup.connections.areSuspect(age, request.url, last.url)
    }

    /** What follows from an attempt. [isCancelled]: its call was, and not by a cut. */
    fun settled(
        attemptEnd: AttemptEnd,
        isCancelled: Boolean,
    ): Settled =
        when (attemptEnd) {
            is AttemptEnd.Answered -> {
                val step = orInternal { judged(attemptEnd.response, isCancelled) }
                if (step is NextStep.Sleep) {
                    Settled.Asleep(
                        step,
                        attemptEnd.response,
                        null,
                    )
                } else {
                    Settled.Delivered(delivered(attemptEnd.response))
                }
            }

            is AttemptEnd.Failed -> {
                settled(orInternal { judged(attemptEnd, isCancelled) }, attemptEnd.exception)
            }

            is AttemptEnd.Cut -> {
                attemptEnd.response?.let { orNull { it.close() } }
                orNull(::isOutOfTime)
                // The cancel was ours, so the caller hears of a timeout, as OkHttp itself says it of a whole call.
                val timeout = InterruptedIOException("timeout")
                attemptEnd.exception?.let(timeout::initCause)
                settled(orInternal { judged(timeout, isCancelled) }, timeout)
            }

            is AttemptEnd.LeftAlone -> {
                val isOfTime = attemptEnd.isCut || cancelKind() == CancelKind.CALL_TIMEOUT
                if (isOfTime) orNull(::isOutOfTime)
                val thrown = if (isOfTime) InterruptedIOException("timeout") else IOException("Canceled")
                settled(orInternal { judged(attemptEnd, thrown, isCancelled) }, thrown)
            }

            is AttemptEnd.Broke -> {
                isOver(null)
                orNull { session.failed(Outcome.failure(FailureKind.UNLISTED, attemptEnd.thrown)) }
                Settled.Thrown(attemptEnd.thrown)
            }
        }

    private fun settled(
        step: NextStep,
        exception: IOException,
    ): Settled = if (step is NextStep.Sleep) Settled.Asleep(step, null, exception) else thrown(exception)

    /** What the caller gets if the call must not wait after all; why, the session was told. */
    fun withoutWait(asleep: Settled.Asleep): Settled =
        if (asleep.exception != null) thrown(asleep.exception) else Settled.Delivered(delivered(checkNotNull(asleep.response)))

    private fun thrown(exception: IOException): Settled.Thrown {
        isOver(null)
        return Settled.Thrown(exception.also(session::attachReportTo))
    }

    private fun isOver(response: Response?) {
        ownKey?.ended(response)
    }

    private fun judged(
        response: Response,
        isCancelled: Boolean,
    ): NextStep {
        val overrule = if (hooks.classifies) hooks.classify(request, response) else null
        if (response.code < FIRST_ERROR && overrule == null) {
            session.succeeded()
            return NextStep.Deliver
        }
        if (isCancelled) return session.cancelled(cancelKind())
        val wentOut = wentOut(response.networkResponse?.request ?: response.request)
        return session.failed(
            Outcome.response(
                status = response.code,
                retryAfter = response.headers("Retry-After"),
                date = response.header("Date"),
                shouldRetry = facts.shouldRetryHeader?.let { response.header(it) },
                bodyUntouched = isBodyUntouched,
                overrule = overrule,
                wentOut = wentOut,
            ),
            outer,
        )
    }

    private fun judged(
        failed: AttemptEnd.Failed,
        isCancelled: Boolean,
    ): NextStep {
        val sentNothing = hasSentNothing(failed.exception)
        if (isCancelled) {
            val cancelKind = cancelKind()
            if (cancelKind == CancelKind.CALL_TIMEOUT) isOutOfTime()
            return session.cancelled(cancelKind, sentNothing)
        }
        if (failed.isInterrupt) return session.cancelled(CancelKind.INTERRUPTED, sentNothing)
        // Then it is Comeback that broke the attempt off.
        val bodyDiffers = replay?.differs == true
        val kind = if (bodyDiffers) FailureKind.OTHER_IO else failureKind(failed.exception, listener, comeback.transportExceptions)
        if (kind.isOfTime) isOutOfTime()
        val wentOut = wentOut(layer.lastOut)
        return session.failed(
            Outcome.failure(
                kind,
                failed.exception,
                lookUpNanos = if (kind == FailureKind.DNS) failedLookUp() else 0,
                sentNothing = sentNothing,
                bodyUntouched = isBodyUntouched,
                overrule = if (bodyDiffers) null else hooks.classify(request, failed.exception),
                wentOut = wentOut,
                bodySpent = bodyDiffers,
            ),
            outer,
        )
    }

    /**
     * Positive proof, or false. Where nobody but the client's own layer is further in, whatever is sent comes past Comeback on its way to the network;
     * else the listener must have heard that layer report this very [failure], and nobody further in may have used another client.
     */
    private fun hasSentNothing(failure: IOException): Boolean =
        !mayBeSentElsewhere && ((layer.lastOut == null && !hasForeignFurtherIn) || listener?.neverSent(causesOf(failure)) == true)

    /** The head of [last], the request that left last. One that left before it, and was another than the app's, is told like a request of a layer further in. */
    private fun wentOut(last: Request?): RequestHead? {
        for (earlier in layer.earlierOut) {
            val left = headOf(earlier, facts)
            if (left.method != head.method || left.key != head.key) layer.attempt().request(policy, left, keyIsMade = left.key != head.key)
        }
        return last?.let { headOf(it, facts) }
    }

    /** How long the failure is remembered against the next attempt. */
    private fun failedLookUp(): Long {
        // Any other resolver is assumed to ask each time.
        if (dns !== Dns.SYSTEM) return 0
        val host = layer.notFound ?: request.url.host
        if (!asksAgain) comeback.lookUpMemory.notFound(host)
        asksAgain = true
        return comeback.lookUpMemory.nanosUntilAsked(host)
    }

    private fun judged(
        timeout: InterruptedIOException,
        isCancelled: Boolean,
    ): NextStep {
        val sentNothing = hasSentNothing(timeout)
        if (isCancelled) return session.cancelled(cancelKind(), sentNothing)
        val overrule = if (outlivesCut) hooks.classify(request, timeout) else null
        // That nothing was sent is proof, whatever ended the attempt.
        val kind =
            failureKind(timeout, listener, comeback.transportExceptions).takeIf { outlivesCut && it.promise == Promise.NEVER_SENT }
                ?: FailureKind.ATTEMPT_TIMEOUT
        val wentOut = wentOut(layer.lastOut)
        // Where the call ends with the cut, it is the deadline that ended it, even if the core's clock is a little behind the timer's.
        if (!outlivesCut) facts.cutAfterNanos?.let { session.reached(session.began + it) }
        return session.failed(
            Outcome.failure(
                kind,
                timeout,
                sentNothing = sentNothing,
                bodyUntouched = outlivesCut && isBodyUntouched,
                overrule = overrule,
                wentOut = wentOut,
                bodySpent = replay?.differs == true,
            ),
            outer,
        )
    }

    /** The attempt is still at it, but not for this call. */
    private fun judged(
        leftAlone: AttemptEnd.LeftAlone,
        thrown: IOException,
        isCancelled: Boolean,
    ): NextStep {
        val sentNothing = leftAlone.ranNothing || (leftAlone.sentNothing && !mayBeSentElsewhere)
        if (isCancelled) return session.cancelled(cancelKind(), sentNothing)
        return session.failed(
            Outcome.failure(
                if (sentNothing) FailureKind.BEFORE_HEADERS else FailureKind.ATTEMPT_TIMEOUT,
                thrown,
                sentNothing = sentNothing,
                bodyUntouched = leftAlone.ranNothing || isBodyUntouched,
                overrule = hooks.classify(request, thrown),
                wentOut = if (sentNothing) null else wentOut(layer.lastOut),
                // Two attempts must not write one body at the same time.
                bodySpent = !leftAlone.sentNothing && !isBodyLetGo(),
            ),
            outer,
        )
    }

    /** Whether it is known that the latest attempt, which is still at it, does not write the body, and never will from now on. */
    private fun isBodyLetGo(): Boolean =
        request.body == null || (!hasForeignFurtherIn && !code.hasForeignNetworkInterceptors && replay?.letGo() == true)

    /** What is thrown when a wait ends without a further attempt. */
    fun ended(
        step: NextStep,
        last: Last,
    ): IOException {
        isOver(null)
        val reason = (step as? NextStep.Stop)?.reason ?: StopReason.Internal
        val thrown =
            when ((reason as? StopReason.Cancelled)?.kind) {
                CancelKind.CALLER -> IOException("Canceled")
                CancelKind.CALL_TIMEOUT -> InterruptedIOException("timeout")
                CancelKind.INTERRUPTED -> InterruptedIOException("interrupted")
                else -> last.thrown(reason, session.report ?: RetryReport.of(emptyList()))
            }
        return thrown.also(session::attachReportTo)
    }

    /** An attempt that is cut off may end before the listener, if there is one, has heard why: then the clock has to do. */
    fun cancelKind(): CancelKind {
        val isOver = clientEnd != null && comeback.time.nanos() >= clientEnd - TIMEOUT_STARTED_EARLIER_NANOS
        return if (isOver || listener?.isCancelledByTimer == true) CancelKind.CALL_TIMEOUT else CancelKind.CALLER
    }

    /** [response] as the rest of the chain gave it, with the report if there is one. */
    private fun delivered(response: Response): Response =
        orNull {
            isOver(response)
            val report = session.report ?: return response
            val request =
                response.request
                    .newBuilder()
                    .tag(RetryReport::class.java, report)
                    .build()
            response.newBuilder().request(request).build()
        } ?: response

    /** Our own fault must not cost the caller the outcome there is. */
    private inline fun orInternal(action: () -> NextStep): NextStep = orNull(action) ?: session.stopped(StopReason.Internal)

    private companion object {
        /** The client starts its timeout before the first interceptor, this call its clock in the middle of them. */
        const val TIMEOUT_STARTED_EARLIER_NANOS = 100_000_000L
    }
}

/** What follows from an attempt. */
internal sealed class Settled {
    class Delivered(
        val response: Response,
    ) : Settled()

    class Thrown(
        val thrown: Throwable,
    ) : Settled()

    /** Wait, [closed] before that; exactly one of [response] and [exception] is there. */
    class Asleep(
        val sleep: NextStep.Sleep,
        val response: Response?,
        val exception: IOException?,
    ) : Settled() {
        /** Closes the response, whose connection would be held all through the wait, and keeps what the caller gets if the wait ends the call. */
        fun closed(): Last {
            if (exception != null) return Last { _, _ -> exception }
            checkNotNull(response)
            val status = response.code
            val headers = response.headers
            orNull { response.close() }
            return Last { reason, report -> RetryStoppedException.of(reason, status, headers.toList(), report) }
        }
    }
}

/** The last attempt's exception, or what stands in for its closed response. */
internal fun interface Last {
    fun thrown(
        reason: StopReason,
        report: RetryReport,
    ): IOException
}

/** When [timeout], the client's own for the whole call, will end a call that began at [began]; as it is set by client or call. */
internal fun clientEnd(
    timeout: Timeout,
    began: Long,
    time: Time,
): Long? {
    val ofTimeout = timeout.timeoutNanos().takeIf { it > 0 }
    val ofDeadline = if (timeout.hasDeadline()) timeout.deadlineNanoTime() - System.nanoTime() + time.nanos() - began else null
    val left = listOfNotNull(ofTimeout, ofDeadline).minOrNull() ?: return null
    // A timeout that no clock reaches is none.
    return (began + left).takeIf { left <= 0 || it > began }
}
