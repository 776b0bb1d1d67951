// The loop of one call: attempt, classify, ask the core, close, wait, again.
package dev.comeback.okhttp

import dev.comeback.CallSession
import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.DriverFacts
import dev.comeback.FailureKind
import dev.comeback.NetworkSnapshot
import dev.comeback.NetworkState
import dev.comeback.NextStep
import dev.comeback.Outcome
import dev.comeback.RequestFacts
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import okio.Timeout
import java.io.Closeable
import java.io.IOException
import java.io.InterruptedIOException

/** Drives one call on the thread that runs it. It knows no rule: the core, asked through the session, has them all. */
internal class RetryLoop(
    private val chain: Interceptor.Chain,
    request: Request,
    private val comeback: Comeback,
    policy: RetryPolicy,
    private val facts: DriverFacts,
    private val hooks: Hooks,
    private val pools: FreshPools,
    private val layer: CallLayer,
    private val began: Long,
) {
    private val call = chain.call()
    private val clientEnd = clientEnd(call.timeout())

    /** The app's request, with its key. */
    private val request = withKey(request)
    private val hasKey = !this.request.header(facts.keyHeader).isNullOrBlank()
    private val isConditional = CONDITIONS.any { request.header(it) != null }

    private val session =
        CallSession(
            comeback,
            policy,
            label = if (comeback.hasListener) hooks.label(this.request) else null,
            facts =
                RequestFacts(
                    method = request.method,
                    hasKey = hasKey,
                    conditional = isConditional,
                    hasBody = request.body != null,
                    bodyReplayable = request.body?.isReplayable() ?: true,
                    onlyIfCached = request.header("Cache-Control") != null && request.cacheControl.onlyIfCached,
                ),
            began = began,
            clientEnd = clientEnd,
        )

    private var noted = NetworkSnapshot.UNKNOWN
    private var witness: AttemptWitness? = null

    /** As it goes out: only its body may be another than the app's. Null before the first attempt. */
    private var outgoing: Request? = null

    /** What the rest of the chain threw that is no I/O error. It is not ours to judge, and passes as it is. */
    var foreign: Throwable? = null
        private set

    /** [first] is the first attempt, if it was made already; [before] what was known of the network then. */
    fun run(
        before: NetworkSnapshot,
        first: Attempted?,
    ): Response {
        try {
            noted = session.noteAttempt(before)
            if (first != null) outgoing = request
            var attempted = first ?: attempt(null)
            var isFirst = true
            while (true) {
                val next =
                    when (attempted) {
                        is Attempted.Answered -> afterAnswer(attempted.response) ?: return delivered(attempted.response)
                        is Attempted.Failed -> afterFailure(attempted.exception)
                        is Attempted.Cut -> throw cutOff(attempted)
                        is Attempted.Broke -> throw broken(attempted.thrown, isFirst)
                    }
                attempted = attempt(next.limit.inactivityNanos)
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
        } finally {
            orNull {
                // The connection this call leaves behind belongs to a path that is gone.
                if (comeback.snapshot.path != noted.path) watch()
                pools.sweep()
            }
        }
    }

    private fun attempt(inactivityNanos: Long?): Attempted {
        val before = noted
        noted = session.noteAttempt()
        val isFirst = outgoing == null
        if (isFirst) {
            prepare()
        } else {
            watch()
            if (noted.path != before.path) FreshPools.abandonConnectionOf(call)
        }
        witness?.attemptBegins()
        val limited = chainFor(inactivityNanos)
        return attempted(limited, outgoing ?: request, cutTimer(call, facts, began, comeback.time)) {}
    }

    /**
     * An interceptor put another response in the place of the one it got, and never closed that one. A caller would only lose a connection by it; it
     * is the next attempt that OkHttp refuses to make.
     */
    private fun isOfOpenResponse(thrown: Throwable) =
        thrown is IllegalStateException &&
            thrown.message?.startsWith("cannot make a new request because the previous response is still open") == true

    /** A first attempt is left alone, unless something about it can only be known by listening. */
    private fun prepare() {
        // Whatever its key: one that has a body is listened to in any case. A GET's conditions are its cache's.
        val mayRepeat = facts.mayRepeat(request.method) && !(isConditional && takesBody(request.method))
        val isKnownOffline = noted.state == NetworkState.OFFLINE || noted.state == NetworkState.BLOCKED
        outgoing = request
        if (request.body != null || !mayRepeat || isKnownOffline) {
            outgoing = watched(request, watch(), clientMayResend = !facts.clientResendsOff)
        }
    }

    private fun watch(): AttemptWitness = witness ?: layer.witness(call, pools).also { witness = it }

    private fun chainFor(inactivityNanos: Long?): Interceptor.Chain {
        var limited = chain.limitedTo(inactivityNanos, facts)
        if (facts.clientResendsOff) limited = limited.withRetryOnConnectionFailure(false)
        pools.poolFor(chain.connectionPool, noted.path)?.let { limited = limited.withConnectionPool(it) }
        return limited
    }

    /** Null if [response] is what the caller gets. */
    private fun afterAnswer(response: Response): NextStep.Go? {
        val step = orInternal { judged(response) }
        if (step !is NextStep.Sleep) return null
        val slot = slotFor(step) ?: return null
        val status = response.code
        val headers = response.headers
        // Before the wait, or its connection would be held all the while.
        orNull { response.close() }
        val next = slot.use { awaited(step) }
        if (next is NextStep.Go) return next
        throw ended(next) { reason, report -> RetryStoppedException(reason, status, headers.toList(), report) }
    }

    private fun judged(response: Response): NextStep {
        val overrule = if (hooks.classifies) hooks.classify(request, response) else null
        if (response.code < FIRST_ERROR && overrule == null) {
            session.succeeded()
            return NextStep.Deliver
        }
        if (call.isCanceled()) return session.cancelled(cancelKind())
        return session.failed(
            Outcome.response(
                status = response.code,
                retryAfter = response.headers("Retry-After"),
                date = response.header("Date"),
                shouldRetry = facts.shouldRetryHeader?.let { response.header(it) },
                bodyUntouched = isBodyUntouched(),
                overrule = overrule,
            ),
        )
    }

    private fun afterFailure(exception: IOException): NextStep.Go {
        val step = orInternal { judged(exception) }
        val next = if (step is NextStep.Sleep) awaited(step) else step
        if (next is NextStep.Go) return next
        if (step !is NextStep.Sleep) throw exception.also(session::attachReportTo)
        throw ended(next) { _, _ -> exception }
    }

    private fun judged(exception: IOException): NextStep {
        if (call.isCanceled()) return session.cancelled(cancelKind())
        if (isInterrupt(exception)) {
            Thread.currentThread().interrupt()
            return session.cancelled(CancelKind.INTERRUPTED)
        }
        val kind = failureKind(exception, witness)
        return session.failed(
            Outcome.failure(
                kind,
                exception,
                lookUpNanos = if (kind == FailureKind.DNS) failedLookUpNanos(chain.dns) else 0,
                bodyUntouched = isBodyUntouched(),
                overrule = hooks.classify(request, exception),
            ),
        )
    }

    private fun isBodyUntouched(): Boolean = (outgoing?.body as? WatchedBody)?.isTouched == false

    private fun broken(
        thrown: Throwable,
        isFirst: Boolean,
    ): Throwable {
        if (!isFirst && isOfOpenResponse(thrown)) return thrown
        foreign = thrown
        orNull { session.failed(Outcome.failure(FailureKind.UNLISTED, thrown)) }
        return thrown
    }

    /** The cancel was ours, so the caller hears of a timeout, as OkHttp itself says it of a whole call. */
    private fun cutOff(attempted: Attempted.Cut): IOException {
        attempted.response?.let { orNull { it.close() } }
        session.failed(Outcome.failure(FailureKind.ATTEMPT_TIMEOUT, attempted.exception))
        // A cancelled call has no next attempt, even if the core's clock is a little behind the timer's.
        session.stopped(StopReason.Elapsed)
        val timeout = InterruptedIOException("timeout")
        attempted.exception?.let(timeout::initCause)
        return timeout.also(session::attachReportTo)
    }

    /** Null if this call must not sleep here; why, the session knows. */
    private fun slotFor(sleep: NextStep.Sleep): Closeable? {
        if (!blocks(sleep)) return WaitingSlots.NONE
        if (hooks.isMainThread()) {
            session.cancelled(CancelKind.MAIN_THREAD)
            return null
        }
        val slot = WaitingSlots.take(call)
        if (slot == null) session.stopped(StopReason.TooManyWaiting)
        return slot
    }

    private fun blocks(sleep: NextStep.Sleep) = sleep.askAt > comeback.time.nanos()

    private fun awaited(first: NextStep.Sleep): NextStep {
        // Listening first: a cancel before that is seen below, a later one wakes.
        val wakeup = watch().wakeup
        var step: NextStep = first
        try {
            while (step is NextStep.Sleep) {
                if (call.isCanceled()) return session.cancelled(cancelKind())
                if (blocks(step) && hooks.isMainThread()) return session.cancelled(CancelKind.MAIN_THREAD)
                session.await(step, wakeup)
                if (call.isCanceled()) return session.cancelled(cancelKind())
                step = session.woken()
            }
        } catch (_: InterruptedException) {
            Thread.currentThread().interrupt()
            return session.cancelled(CancelKind.INTERRUPTED)
        }
        return step
    }

    /** What is thrown when a wait ends without a further attempt; [last] gives the last attempt's exception, or what stands in for its response. */
    private inline fun ended(
        step: NextStep,
        last: (StopReason, RetryReport) -> IOException,
    ): IOException {
        val reason = (step as? NextStep.Stop)?.reason ?: StopReason.Internal
        val thrown =
            when ((reason as? StopReason.Cancelled)?.kind) {
                CancelKind.CALLER, CancelKind.CALL_TIMEOUT -> IOException("Canceled")
                CancelKind.INTERRUPTED -> InterruptedIOException("interrupted")
                else -> last(reason, session.report ?: RetryReport.of(emptyList()))
            }
        return thrown.also(session::attachReportTo)
    }

    /** An attempt that is cut off may end before the witness, if there is one, has heard why: then the clock has to do. */
    private fun cancelKind(): CancelKind {
        val isOver = clientEnd != null && comeback.time.nanos() >= clientEnd - TIMEOUT_STARTED_EARLIER_NANOS
        return if (isOver || witness?.isCancelledByTimer == true) CancelKind.CALL_TIMEOUT else CancelKind.CALLER
    }

    /** [response] as the rest of the chain gave it, but with the app's own body on its request, and with the report if there is one. */
    private fun delivered(response: Response): Response =
        orNull {
            val report = session.report
            val body = response.request.body
            if (report == null && body !is WatchedBody) return response
            val request = response.request.newBuilder()
            if (report != null) request.tag(RetryReport::class.java, report)
            if (body is WatchedBody) request.method(response.request.method, body.body)
            response.newBuilder().request(request.build()).build()
        } ?: response

    /** When [timeout], the client's own for the whole call, will cancel it; as it is set by client or call. */
    private fun clientEnd(timeout: Timeout): Long? {
        val ofTimeout = timeout.timeoutNanos().takeIf { it > 0 }
        val ofDeadline = if (timeout.hasDeadline()) timeout.deadlineNanoTime() - System.nanoTime() + comeback.time.nanos() - began else null
        val left = listOfNotNull(ofTimeout, ofDeadline).minOrNull() ?: return null
        // A timeout that no clock reaches is none.
        return (began + left).takeIf { left <= 0 || it > began }
    }

    private fun withKey(request: Request): Request {
        val isWanted = facts.makesKey(request.method) || request.tag(MakeIdempotencyKey::class.java) != null
        if (!isWanted || request.header(facts.keyHeader) != null) return request
        val key = layer.keys.keyFor(request)
        return request.newBuilder().header(facts.keyHeader, if (facts.keyQuoted) "\"$key\"" else key).build()
    }

    /** Our own fault must not cost the caller the outcome there is. */
    private inline fun orInternal(action: () -> NextStep): NextStep = orNull(action) ?: session.stopped(StopReason.Internal)

    private companion object {
        val CONDITIONS = arrayOf("If-Match", "If-None-Match", "If-Unmodified-Since")

        /** The client starts its timeout before the first interceptor, this loop its clock in the middle of them. */
        const val TIMEOUT_STARTED_EARLIER_NANOS = 100_000_000L
    }
}
