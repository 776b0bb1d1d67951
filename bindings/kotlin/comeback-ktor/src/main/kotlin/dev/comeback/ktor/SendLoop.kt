// The loop of one call: attempt, classify, ask the core, close, wait, again.
package dev.comeback.ktor

import dev.comeback.CancelKind
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.NextStep
import dev.comeback.Outcome
import dev.comeback.RetryReport
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import dev.comeback.coroutines.slept
import dev.comeback.orNull
import io.ktor.client.HttpClient
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.HttpRedirect
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.HttpTimeoutCapability
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.pluginOrNull
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.client.utils.unwrapCancellationException
import io.ktor.http.HttpHeaders
import io.ktor.util.toMap
import io.ktor.utils.io.InternalAPI
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableJob
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.InternalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.cancel
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.isActive
import kotlinx.coroutines.job

/** Drives one call in the coroutine that made it. It knows no rule: the core, asked through the session, has them all. */
internal class SendLoop(
    private val sender: Send.Sender,
    private val client: HttpClient,
    private val comeback: Comeback,
    private val hooks: Hooks,
    private val engine: Engine,
    private val request: HttpRequestBuilder,
    private val state: CallState,
) {
    private val session = state.session

    /** What one attempt came to. */
    private class Attempted(
        val request: HttpRequestBuilder,
        val guard: AttemptGuard,
        val call: HttpClientCall?,
        val thrown: Throwable?,
    ) {
        /** Freed from any cancellation that carried it. */
        val failure: Throwable? = thrown?.unwrapCancellationException()

        /** As the caller gets it: Ktor frees it by itself. */
        val asThrown: Throwable get() = checkNotNull(thrown)
    }

    suspend fun run(): HttpClientCall {
        try {
            return loop()
        } catch (thrown: Throwable) {
            state.isOver = true
            // Nothing new to a session that has ended already. What comes here otherwise is the end of the calling coroutine, or a fault of ours.
            if (thrown is CancellationException) session.cancelled(kindOf(thrown)) else session.stopped(StopReason.Internal)
            throw thrown
        }
    }

    private suspend fun loop(): HttpClientCall {
        // A redirect that is followed goes on with the attempt it came in.
        var isNewAttempt = !state.isRedirected
        state.isRedirected = false
        var before: Attempted? = null
        while (true) {
            if (isNewAttempt) {
                session.noteAttempt()
                state.attempts++
                state.attemptBegan = session.now()
            }
            isNewAttempt = true
            val attempted = attempt(before)
            endFromOutside(attempted)?.let { throw it }
            if (attempted.guard.isAbandoned) {
                // A response that came in that moment has lost its body to the end of its attempt.
                close(attempted)
                before = null
                continue
            }
            val step = judged(attempted)
            if (step !is NextStep.Sleep) return answered(attempted)
            close(attempted)
            orNull { client.monitor.raise(ComebackRetryEvent, eventOf(attempted)) }
            val next = session.slept(step, otherwise = request.executionContext)
            if (next !is NextStep.Go) throw ended(attempted, next)
            before = attempted
        }
    }

    private suspend fun attempt(before: Attempted?): Attempted {
        val sent = attemptRequest(before)
        val job = sent.executionContext as CompletableJob
        val scope = CoroutineScope(currentCoroutineContext())
        val guard = AttemptGuard(comeback, session, state.body, session.noted.path, state.facts, job, scope)
        sent.attributes.put(AttemptGuard.KEY, guard)
        val limit = session.limit.hardNanos?.let { it - (session.now() - state.attemptBegan) }
        var call: HttpClientCall? = null
        var thrown: Throwable? = null
        try {
            guard.begin(limit)
            call = sender.proceed(sent)
        } catch (caught: Throwable) {
            thrown = caught
        } finally {
            guard.done()
        }
        if (guard.isCut) {
            // The limit was ours, so the caller hears of a timeout, as Ktor says it. A response that came in that moment has lost its body to it.
            orNull { call?.cancel() }
            call = null
            thrown = timeout(sent)
        }
        // Complete, it lives on with the response's body.
        if (call == null) job.cancel() else job.complete()
        if (guard.isCut && limit != null) session.reached(state.attemptBegan + checkNotNull(session.limit.hardNanos))
        return Attempted(sent, guard, call, thrown)
    }

    /** A copy for one attempt: an attempt's end must not be the call's. */
    @OptIn(InternalAPI::class)
    private fun attemptRequest(before: Attempted?): HttpRequestBuilder {
        val sent = HttpRequestBuilder().takeFrom(request)
        // Shared by all copies of a request, so an attempt's limits may still be in it.
        state.timeouts?.let { sent.setCapability(HttpTimeoutCapability, it.copied()) }
        sent.body = state.body.outgoing
        val job = sent.executionContext as CompletableJob
        val link = Job(request.executionContext)
        job.invokeOnCompletion { link.complete() }
        link.invokeOnCompletion { cause ->
            if (cause !=
                null
            ) {
                job.cancel(cause as? CancellationException ?: CancellationException(cause.message, cause))
            }
        }
        if (state.attempts > 1) {
            hooks.modify(ComebackModifyRequestContext(request, before?.call?.response, before?.failure, state.attempts), sent)
            // By these it was judged whether the request may go again.
            sent.method = request.method
            sent.body = state.body.outgoing
            if (state.key == null) sent.headers.remove(state.facts.keyHeader) else sent.headers[state.facts.keyHeader] = state.key
        }
        return sent
    }

    /** What is thrown if the caller, its client or a timeout around the call has ended it; null if the attempt speaks for itself. */
    private suspend fun endFromOutside(attempted: Attempted): Throwable? {
        val thrown = attempted.thrown ?: return null
        val isCallersEnd = !currentCoroutineContext().isActive
        if (isCallersEnd || !request.executionContext.isActive) {
            session.cancelled(if (isCallersEnd) callersEnd() else kindOf(thrown))
            if (!isCallersEnd) session.attachReportTo(checkNotNull(attempted.failure))
            return thrown
        }
        if (attempted.guard.isCut || attempted.guard.isAbandoned) return null
        val failure = attempted.failure
        // Somebody else's, for instance the engine's: neither ours to judge nor an attempt's failure.
        if (failure !is CancellationException || failure is TimeoutCancellationException) return null
        session.cancelled(CancelKind.CALLER)
        return thrown
    }

    @OptIn(InternalCoroutinesApi::class)
    private suspend fun callersEnd(): CancelKind = kindOf(currentCoroutineContext().job.getCancellationException())

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

    private fun judged(attempted: Attempted): NextStep {
        val response = attempted.call?.response
        return if (response != null) judged(attempted, response) else judgedFailure(attempted)
    }

    private fun judged(
        attempted: Attempted,
        response: HttpResponse,
    ): NextStep {
        val status = response.status.value
        val overrule = hooks.classify(attempted.request, response, null)
        if (status < FIRST_ERROR && overrule == null) {
            if (mayBeFollowed(response)) awaitFollowing() else session.succeeded()
            return NextStep.Deliver
        }
        return session.failed(
            Outcome.response(
                status = status,
                retryAfter = response.headers.getAll(HttpHeaders.RetryAfter).orEmpty(),
                date = response.headers[HttpHeaders.Date],
                shouldRetry = state.facts.shouldRetryHeader?.let { response.headers[it] },
                bodyUntouched = state.body.isUntouched,
                overrule = overrule,
            ),
        )
    }

    private fun judgedFailure(attempted: Attempted): NextStep {
        val failure = checkNotNull(attempted.failure)
        val kind = if (attempted.guard.isCut) FailureKind.ATTEMPT_TIMEOUT else failureKind(failure, state.body)
        return session.failed(
            Outcome.failure(
                kind,
                failure,
                lookUpNanos = if (kind == FailureKind.DNS) engine.failedLookUpNanos() else 0,
                bodyUntouched = state.body.isUntouched,
                overrule = hooks.classify(attempted.request, null, failure),
            ),
        )
    }

    private fun mayBeFollowed(response: HttpResponse) =
        response.status.value in REDIRECTS && HttpHeaders.Location in response.headers && client.pluginOrNull(HttpRedirect) != null

    /** The call ends with the request, unless the redirect is followed before. */
    private fun awaitFollowing() {
        state.isRedirected = true
        request.executionContext.invokeOnCompletion { if (it == null) session.succeeded() else session.cancelled(CancelKind.CALLER) }
    }

    /** The answer, as the caller gets it: returned or thrown. */
    private fun answered(attempted: Attempted): HttpClientCall {
        val call = attempted.call
        if (call == null) {
            session.attachReportTo(checkNotNull(attempted.failure))
            throw attempted.asThrown
        }
        state.isOver = !state.isRedirected
        session.report?.let { call.attributes.put(REPORT, it) }
        return call
    }

    private fun timeout(sent: HttpRequestBuilder): Throwable =
        HttpRequestTimeoutException(sent.url.buildString(), session.limit.hardNanos?.let { it / 1_000_000 })

    /** Before the wait, or its connection would be held all the while. */
    private fun close(attempted: Attempted) {
        orNull { attempted.call?.cancel() }
        attempted.request.executionContext.cancel()
    }

    private fun eventOf(attempted: Attempted) =
        ComebackRetryEventData(attempted.request, state.attempts, attempted.call?.response, attempted.failure)

    /** What is thrown when a wait ends without a further attempt. */
    @OptIn(InternalCoroutinesApi::class)
    private fun ended(
        attempted: Attempted,
        step: NextStep?,
    ): Throwable {
        val outside = request.executionContext
        if (step == null && outside.isCancelled) {
            val cancellation = outside.getCancellationException()
            session.cancelled(kindOf(cancellation))
            session.attachReportTo(cancellation.unwrapCancellationException())
            return cancellation
        }
        // Without a step, and not cancelled: the client was closed.
        val reason = ((step ?: session.cancelled(CancelKind.CLOSED)) as? NextStep.Stop)?.reason ?: StopReason.Internal
        val response = attempted.call?.response
        if (response == null) {
            session.attachReportTo(checkNotNull(attempted.failure))
            return attempted.asThrown
        }
        val headers = response.headers.toMap().flatMap { (name, values) -> values.map { name to it } }
        return RetryStoppedException(reason, response.status.value, headers, session.report ?: RetryReport.of(emptyList()))
            .also(session::attachReportTo)
    }

    private fun HttpTimeoutConfig.copied() = HttpTimeoutConfig(requestTimeoutMillis, connectTimeoutMillis, socketTimeoutMillis)

    private companion object {
        /** The first status that is an error. */
        const val FIRST_ERROR = 400
        val REDIRECTS = setOf(301, 302, 303, 307, 308)
    }
}
