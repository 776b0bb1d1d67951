// One attempt: what was sent, what it came to, and how it is ended: at its limit, or because the network it runs on is gone and it is begun anew.
package dev.comeback.ktor

import dev.comeback.DriverFacts
import dev.comeback.InnerRequest
import dev.comeback.NetworkState
import dev.comeback.NextStep
import dev.comeback.OuterAttempt
import dev.comeback.RetryReport
import dev.comeback.Subscription
import dev.comeback.orNull
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.utils.unwrapCancellationException
import io.ktor.http.isSuccess
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableJob
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.DisposableHandle
import kotlinx.coroutines.Job
import kotlinx.coroutines.cancel
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.coroutines.CoroutineContext
import kotlin.time.Duration.Companion.nanoseconds

/**
 * Sends [request]. Watched until its response head is there, which costs as little as it can: a coroutine, a child of the call's, is made only when
 * there is something to ask. The attempt itself runs in the caller's own, as it would without Comeback.
 */
internal class Attempt(
    private val loop: SendLoop,
    val request: HttpRequestBuilder,
    private val context: CoroutineContext,
) : Mark,
    () -> Unit {
    private val session get() = loop.session
    private val job get() = request.executionContext as CompletableJob
    private val limit = loop.limit
    private var subscription: Subscription? = null
    private var timer: DisposableHandle? = null
    private var asking: Job? = null

    /** Made with [asking]: most attempts see no change. */
    private var changes: Channel<Unit>? = null
    private var isDone = false
    private var hasHead = false

    /** The attempt reached its limit and was ended. */
    @Volatile
    var isCut: Boolean = false
        private set

    /** The attempt was given up; the call goes on with a fresh one. */
    @Volatile
    var isAbandoned: Boolean = false
        private set

    /** What it came to. */
    var call: HttpClientCall? = null
        private set

    /** As the caller gets it: Ktor frees it by itself. */
    var thrown: Throwable? = null
        private set

    /** What was tried before, if [call] is the answer. A request made from this one takes this mark along, but gets another. */
    var report: RetryReport? = null

    /** [thrown], freed from any cancellation that carried it. */
    val failure: Throwable? get() = thrown?.unwrapCancellationException()

    val isPlainSuccess: Boolean get() = call?.response?.status?.isSuccess() == true

    val facts: DriverFacts get() = loop.facts

    /** The network's path when the attempt began. */
    val notedPath: Long get() = loop.noted.path

    /** For reads, writes and connects each; see [dev.comeback.Limit]. */
    val inactivityNanos: Long? get() = limit.inactivityNanos

    private var outer: OuterAttempt? = null

    /** As layers further in see it. [connectNanos]: how long a connect may take. */
    fun outer(connectNanos: Long?): OuterAttempt =
        outer ?: OuterAttempt(facts.clientResendsOff, connectNanos, inactivityNanos, notedPath).also { outer = it }

    /** What layers further in told of. */
    val told: List<InnerRequest> get() = outer?.told.orEmpty()

    /** The attempt begins, or goes on: [spentNanos] of what it may take are over. */
    fun begin(spentNanos: Long) {
        orNull {
            limit.hardNanos?.let { timer = context.runIn(it - spentNanos) { end { isCut = true } } }
            subscription = loop.comeback.subscribe(this)
            invoke()
        }
    }

    /** A response head is there: nothing ends the attempt any more, unless a plugin makes another request for it. */
    fun headCame() {
        synchronized(this) {
            if (isDone || hasHead) return
            hasHead = true
        }
        unwatch()
    }

    /** A request of the attempt goes out. After a head it is another one, for instance with a fresh token; what the attempt may take is still the same. */
    fun goesOut() {
        synchronized(this) {
            if (isDone || !hasHead) return
            hasHead = false
        }
        begin(loop.spentNanos())
    }

    /** The attempt is over: it brought [call]. */
    fun answered(call: HttpClientCall) {
        stopWatching()
        if (isCut) {
            // It came in that moment, and has lost its body to it.
            orNull { call.cancel() }
            thrown = timeout()
            job.cancel()
        } else {
            this.call = call
            // Complete, it lives on with the response's body.
            job.complete()
        }
    }

    /** The attempt is over, without an answer. */
    fun failed(thrown: Throwable) {
        stopWatching()
        this.thrown = if (isCut) timeout() else thrown
        job.cancel()
    }

    /** The limit was ours, so the caller hears of a timeout, as Ktor says it. */
    private fun timeout() = HttpRequestTimeoutException(request.url.buildString(), limit.hardNanos?.let { it / NANOS_PER_MILLI })

    /** What it came to is of no use any more, and a wait must not hold its connection. */
    fun discard() {
        orNull { call?.cancel() }
        job.cancel()
    }

    private fun stopWatching() {
        outer?.close()
        synchronized(this) {
            if (isDone) return
            isDone = true
            if (hasHead) return
        }
        unwatch()
    }

    private fun unwatch() {
        subscription?.close()
        timer?.dispose()
        synchronized(this) { asking.also { asking = null } }?.cancel()
    }

    /** The network has changed. */
    override fun invoke() {
        if (!hasMoved()) return
        synchronized(this) {
            if (isDone || hasHead) return
            val changes = changes ?: Channel<Unit>(Channel.CONFLATED).also { changes = it }
            changes.trySend(Unit)
            if (asking == null) asking = CoroutineScope(context).launch { ask(changes) }
        }
    }

    private fun hasMoved(): Boolean {
        val network = loop.comeback.snapshot
        return network.path != notedPath && network.state != NetworkState.OFFLINE && network.state != NetworkState.BLOCKED
    }

    private suspend fun ask(changes: Channel<Unit>) {
        var askAt: Long? = null
        while (true) {
            await(changes, askAt)
            // No engine tells what it has sent, and silence proves nothing.
            val step =
                synchronized(this) {
                    if (isDone || hasHead) return
                    session.interrupted(sentNothing = false, bodyUntouched = loop.body.isUntouched, inner = told)
                }
            when (step) {
                is NextStep.Keep -> askAt = step.askAt
                is NextStep.Restart -> return end { isAbandoned = true }
                else -> return
            }
        }
    }

    private suspend fun await(
        changes: Channel<Unit>,
        askAt: Long?,
    ) {
        if (askAt == null) return changes.receive()
        val left = askAt - synchronized(this) { session.now() }
        val isChanged = left > 0 && withTimeoutOrNull(left.nanoseconds) { changes.receive() } != null
        if (!isChanged) synchronized(this) { session.reached(askAt) }
    }

    private inline fun end(mark: () -> Unit) {
        synchronized(this) {
            if (isDone || hasHead) return
            mark()
        }
        job.cancel(CancellationException("Comeback ended this attempt"))
    }
}
