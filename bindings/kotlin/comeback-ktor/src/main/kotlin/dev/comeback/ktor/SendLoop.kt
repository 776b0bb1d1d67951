// The loop of one call: attempt, classify, ask the core, close, wait, again.
package dev.comeback.ktor

import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.NetworkSnapshot
import dev.comeback.RetryPolicy
import dev.comeback.RetryReport
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import dev.comeback.coroutines.slept
import dev.comeback.driver.CallNetwork
import dev.comeback.driver.CallSession
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.Limit
import dev.comeback.driver.NANOS_PER_MILLI
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestHead
import dev.comeback.driver.orNull
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.HttpRedirect
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.HttpTimeoutCapability
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.client.plugins.Sender
import io.ktor.client.plugins.pluginOrNull
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.client.utils.unwrapCancellationException
import io.ktor.http.HttpHeaders
import io.ktor.http.isSuccess
import io.ktor.util.toMap
import io.ktor.utils.io.InternalAPI
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableJob
import kotlinx.coroutines.InternalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.cancel
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.isActive
import kotlinx.coroutines.job
import kotlin.coroutines.CoroutineContext

/**
 * Drives one call in the coroutine that made it. It decides nothing: it asks the core, through the session. A redirect that is followed belongs to the same call.
 *
 * @param policy not `OFF`
 * @param original the request as the plugin received it. Each attempt sends a copy; a redirect is a request of its own
 * @param began when the call began. It is earlier than this loop if a plugin further out sends its request again
 * @param attemptBegan when the attempt in flight began
 * @param sentBefore how many requests a plugin further out sent for the same call before this one
 */
internal class SendLoop(
    val setup: Setup,
    val policy: RetryPolicy,
    private val original: HttpRequestBuilder,
    val body: BodyWatch,
    private val keyIsMade: Boolean,
    val began: Long,
    private var attemptBegan: Long,
    private val sentBefore: Int,
) : RequestAttribute {
    val comeback: Comeback get() = setup.comeback

    private val hooks get() = setup.hooks

    /** See [Setup.mayBeSentElsewhere]. */
    val mayBeSentElsewhere: Boolean get() = setup.mayBeSentElsewhere

    /** Identifies this call: a request that an app copies from this call's request has the same attributes, but another job. */
    val executionContext: Job get() = original.executionContext

    val facts: DriverFacts get() = checkNotNull(policy.driverFacts)

    /** The request's own timeouts. All copies of a request share one object, so they are read before an attempt's limits change it. */
    private val timeouts = original.getCapabilityOrNull(HttpTimeoutCapability)

    @Volatile
    private var made: CallSession? = null

    private val reportsBefore = CallSession.reports

    /** Made when it is first needed. Most calls succeed at once and have no listener, and need none. */
    val session: CallSession get() = made ?: makeSession()

    /** What the next attempt may take. */
    val limit: Limit get() = made?.limit ?: facts.firstLimit(began, clientEnd())

    /** The network as this call sees it. */
    val network: CallNetwork = comeback.networkFor(facts, original.url.host)

    /** The network's snapshot when the attempt in flight began. */
    var noted: NetworkSnapshot = network.snapshot
        private set

    /** How many attempts have begun. */
    private var attempts = 0

    /** How many requests were sent. The client's own cap (`maxSendCount`) counts the same. */
    var sends: Int = sentBefore
        private set

    /** The request as it came in. */
    val head: RequestHead get() = original.head(facts.keyHeader)

    /** An earlier request of the attempt in flight was sent: a redirect was followed, or a plugin further out sent the call's request before. */
    var hasSentBefore: Boolean = sentBefore > 0
        private set

    /** A redirect was returned. If it is followed, the attempt goes on. */
    var isRedirected: Boolean = false
        private set

    /** A name was not found. */
    var asksAgain: Boolean = false
        private set

    /** The caller has its answer, or its exception. */
    @Volatile
    var isOver: Boolean = false
        private set

    /** How long the attempt in flight has lasted. */
    fun spentNanos(): Long = (made?.now() ?: comeback.time.nanos()) - attemptBegan

    @Synchronized
    private fun makeSession(): CallSession =
        made ?: CallSession(
            comeback,
            policy,
            label = if (comeback.hasListener) hooks.label(original) else null,
            facts = requestFacts(original, facts.keyHeader, body, keyIsMade),
            began = began,
            clientEnd = clientEnd(),
            network = network,
        ).also {
            it.noteAttempt(noted, reportsBefore)
            made = it
        }

    /** When the timeout of an `HttpTimeout` further out ends the whole call; null if there is none. */
    private fun clientEnd(): Long? {
        if (!setup.isTimeoutOutside) return null
        val millis = timeouts?.requestTimeoutMillis?.takeIf { it < Long.MAX_VALUE / NANOS_PER_MILLI } ?: return null
        return began + millis * NANOS_PER_MILLI
    }

    /** Everything that suspends is in this one function, because each suspending function costs an object per call. */
    suspend fun run(
        sender: Sender,
        request: HttpRequestBuilder,
    ): HttpClientCall {
        var before: Attempt? = null
        try {
            while (true) {
                val spent = beginAttempt()
                val attempt = Attempt(this, attemptRequest(request, before))
                attempt.request.attributes.put(RequestAttribute.KEY, attempt)
                val call =
                    try {
                        val answer = attempt.sentBy(sender, spent)
                        val readBody = facts.readBodyBytes.takeIf { answer.response.status.value < FIRST_ERROR }
                        if (readBody == null) answer else answer.withBodyRead(readBody)
                    } catch (thrown: Throwable) {
                        attempt.failed(thrown)
                        null
                    }
                if (call != null) attempt.answered(call)
                sends += attempt.sends
                if (attempt.isCut) session.reached(attemptBegan + checkNotNull(limit.hardNanos))
                endFromOutside(attempt, currentCoroutineContext())?.let { throw it }
                if (attempt.isAbandoned) {
                    // A response that came at that moment is useless: its body ended with the attempt.
                    attempt.discard()
                    before = null
                    continue
                }
                // A plugin further out may send this request again, for a redirect or after a 401. The call's time goes on then.
                if (!attempt.isPlainSuccess) request.attributes.put(RequestAttribute.KEY, this)
                val step = withinSends(judged(attempt))
                if (step !is NextStep.Sleep) return answered(attempt)
                attempt.discard()
                orNull { setup.client.monitor.raise(ComebackRetryEvent, eventOf(attempt)) }
                val next = session.slept(step, otherwise = executionContext)
                if (next !is NextStep.Go) throw ended(attempt, next)
                before = attempt
            }
        } catch (thrown: Throwable) {
            isOver = true
            // A session that has ended ignores this. Otherwise the calling coroutine was cancelled, or this code has a bug.
            if (thrown is CancellationException) session.cancelled(kindOf(thrown)) else session.stopped(StopReason.Internal)
            throw thrown
        }
    }

    /** Begins an attempt, or goes on with the one that brought the redirect which is followed now. Returns how long the attempt has lasted. */
    private fun beginAttempt(): Long {
        if (isRedirected) {
            isRedirected = false
            hasSentBefore = true
            return spentNanos()
        }
        hasSentBefore = sentBefore > 0
        // The first attempt began with the call.
        if (attempts > 0) {
            noted = session.noteAttempt()
            attemptBegan = session.now()
        }
        attempts++
        return 0
    }

    /** A copy for one attempt. The attempt's end must not end the call, and what plugins further in change must not reach the next attempt. */
    @OptIn(InternalAPI::class)
    private fun attemptRequest(
        request: HttpRequestBuilder,
        before: Attempt?,
    ): HttpRequestBuilder {
        val sent = HttpRequestBuilder().takeFrom(request)
        // The shared object may still hold the limits of an earlier attempt.
        timeouts?.let { sent.setCapability(HttpTimeoutCapability, it.copied()) }
        link(sent.executionContext as CompletableJob)
        if (attempts > 1) {
            hooks.modify(ComebackModifyRequestContext(request, before?.call?.response, before?.failure, attempts), sent)
            // The core judged by these whether the request may be repeated, so a hook cannot change them.
            sent.method = request.method
            sent.body = request.body
            val key = request.headers[facts.keyHeader]
            if (key == null) sent.headers.remove(facts.keyHeader) else sent.headers[facts.keyHeader] = key
        }
        return sent
    }

    /** The call's end ends the attempt, but the attempt's end does not end the call. */
    @OptIn(InternalCoroutinesApi::class)
    private fun link(attempt: CompletableJob) {
        executionContext.invokeOnCompletion(onCancelling = true) { if (it != null) attempt.cancel(asCancellation(it)) }
    }

    /** The call stays active until the response body of its last [attempt] has been read. Ktor itself has read most bodies by now. */
    fun staysActiveFor(attempt: Job) {
        if (attempt.isCompleted) return
        val inCall = Job(executionContext)
        attempt.invokeOnCompletion { inCall.complete() }
    }

    /** The exception to throw if the caller, the client or a timeout around the call ended it. Null: the attempt's own outcome counts. */
    @OptIn(InternalCoroutinesApi::class)
    private fun endFromOutside(
        attempt: Attempt,
        context: CoroutineContext,
    ): Throwable? {
        val thrown = attempt.thrown ?: return null
        val isCallersEnd = !context.isActive
        if (isCallersEnd || !executionContext.isActive) {
            val kind = kindOf(if (isCallersEnd) context.job.getCancellationException() else thrown)
            if (kind == CancelKind.CALL_TIMEOUT) attempt.isOutOfTime()
            session.cancelled(kind, attempt.sentNothing(failure = null))
            // The caller's cancellation is shared by other coroutines, so nothing is attached to it.
            if (!isCallersEnd) session.attachReportTo(checkNotNull(attempt.failure))
            // The attempt reached its limit at the same moment. The caller cancelled, so it gets its cancellation.
            return if (isCallersEnd && attempt.isCut) context.job.getCancellationException() else thrown
        }
        if (attempt.isCut || attempt.isAbandoned) return null
        val failure = attempt.failure
        // Another cancellation, for instance the engine's. It is thrown on, because it is not a failure of the attempt.
        if (failure !is CancellationException || failure is TimeoutCancellationException) return null
        session.cancelled(CancelKind.CALLER, attempt.sentNothing(failure = null))
        return thrown
    }

    /** Stops before the client's own cap would throw: the caller then gets the last answer. */
    private fun withinSends(step: NextStep): NextStep =
        if (step is NextStep.Sleep && sends >= hooks.maxSendCount) session.stopped(StopReason.Attempts) else step

    private fun kindOf(cancellation: Throwable): CancelKind {
        val cause = cancellation.unwrapCancellationException()
        return if (cause is HttpRequestTimeoutException ||
            cause is TimeoutCancellationException
        ) {
            CancelKind.CALL_TIMEOUT
        } else {
            CancelKind.CALLER
        }
    }

    private fun judged(attempt: Attempt): NextStep {
        val response = attempt.call?.response
        return if (response != null) judged(attempt, response) else judgedFailure(attempt)
    }

    private fun judged(
        attempt: Attempt,
        response: HttpResponse,
    ): NextStep {
        val status = response.status.value
        val overrule = hooks.classify(attempt.request, response, null)
        if (status < FIRST_ERROR && overrule == null) {
            if (mayBeFollowed(response)) awaitFollowing() else succeeded()
            return NextStep.Deliver
        }
        return session.failed(
            Outcome.response(
                status = status,
                retryAfter = response.headers.getAll(HttpHeaders.RetryAfter).orEmpty(),
                date = response.headers[HttpHeaders.Date],
                shouldRetry = facts.shouldRetryHeader?.let { response.headers[it] },
                bodyUntouched = body.isUntouched,
                overrule = overrule,
                wentOut = attempt.wentOut,
                inner = attempt.earlierRequests,
            ),
            attempt.outer,
        )
    }

    private fun judgedFailure(attempt: Attempt): NextStep {
        val failure = checkNotNull(attempt.failure)
        val kind =
            when {
                attempt.isCut -> FailureKind.ATTEMPT_TIMEOUT

                // Then it is Comeback that broke the attempt off.
                body.isChanged -> FailureKind.OTHER_IO

                else -> failureKind(failure, body, comeback.transportExceptions)
            }
        if (isOutOfTime(failure)) attempt.isOutOfTime()
        if (kind == FailureKind.DNS) asksAgain = true
        val sentNothing = attempt.sentNothing(if (attempt.isCut) null else failure)
        return session.failed(
            Outcome.failure(
                kind,
                failure,
                lookUpNanos = if (kind == FailureKind.DNS) attempt.failedLookUpNanos else 0,
                sentNothing = sentNothing,
                bodyUntouched = body.isUntouched,
                overrule = if (body.isChanged) null else hooks.classify(attempt.request, null, failure),
                wentOut = attempt.wentOut,
                inner = attempt.earlierRequests,
                bodySpent = body.isChanged,
            ),
            attempt.outer,
        )
    }

    private fun succeeded() {
        if (made != null || comeback.hasListener) session.succeeded()
    }

    private fun mayBeFollowed(response: HttpResponse) =
        isRedirect(response.status.value) && HttpHeaders.Location in response.headers && setup.client.pluginOrNull(HttpRedirect) != null

    private fun isRedirect(status: Int) = status in 301..303 || status == 307 || status == 308

    /** The call succeeds when its request is complete, unless the redirect is followed before that. */
    private fun awaitFollowing() {
        isRedirected = true
        executionContext.invokeOnCompletion { if (it == null) succeeded() else session.cancelled(CancelKind.CALLER) }
    }

    /** Returns or throws the answer, as the caller gets it. */
    private fun answered(attempt: Attempt): HttpClientCall {
        val call = attempt.call
        if (call == null) {
            session.attachReportTo(checkNotNull(attempt.failure))
            throw checkNotNull(attempt.thrown)
        }
        isOver = !isRedirected
        if (isOver && attempt.isPlainSuccess) original.attributes.getOrNull(MadeKey.KEY)?.succeeded(executionContext)
        made?.report?.let {
            attempt.report = it
            if (!attempt.isPlainSuccess) attachToWhatIsThrown()
            // A plugin further in may have returned the answer of another request.
            call.attributes.put(RequestAttribute.KEY, attempt)
        }
        return call
    }

    /** A validator further out may turn the answer into an exception, for instance because of `expectSuccess`. That exception gets the report. */
    @OptIn(InternalCoroutinesApi::class)
    private fun attachToWhatIsThrown() {
        executionContext.invokeOnCompletion(onCancelling = true) {
            if (it != null &&
                it !is CancellationException
            ) {
                session.attachReportTo(it)
            }
        }
    }

    private fun eventOf(attempt: Attempt) = ComebackRetryEventData(attempt.request, attempts, attempt.call?.response, attempt.failure)

    /** The exception to throw when a wait ends without another attempt. */
    @OptIn(InternalCoroutinesApi::class)
    private fun ended(
        attempt: Attempt,
        step: NextStep?,
    ): Throwable {
        if (step == null && executionContext.isCancelled) {
            val cancellation = executionContext.getCancellationException()
            session.cancelled(kindOf(cancellation))
            session.attachReportTo(cancellation.unwrapCancellationException())
            return cancellation
        }
        // There is no step and no cancellation: the client was closed.
        val reason = ((step ?: session.cancelled(CancelKind.CLOSED)) as? NextStep.Stop)?.reason ?: StopReason.Internal
        val response = attempt.call?.response
        if (response == null) {
            session.attachReportTo(checkNotNull(attempt.failure))
            return checkNotNull(attempt.thrown)
        }
        val headers = response.headers.toMap().flatMap { (name, values) -> values.map { name to it } }
        return RetryStoppedException
            .of(reason, response.status.value, headers, session.report ?: RetryReport.of(emptyList()))
            .also(session::attachReportTo)
    }

    private fun HttpTimeoutConfig.copied() = HttpTimeoutConfig(requestTimeoutMillis, connectTimeoutMillis, socketTimeoutMillis)

    private companion object {
        /** The first status that is an error. */
        const val FIRST_ERROR = 400
    }
}

private fun asCancellation(cause: Throwable) = cause as? CancellationException ?: CancellationException(cause.message, cause)
