// One attempt: what was sent for it, what it came to, and how it is ended: at its limit, or because the network it runs on is gone and it is begun anew.
package dev.comeback.ktor

import dev.comeback.RetryReport
import dev.comeback.coroutines.LayerElement
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.FailedLookUps
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.NANOS_PER_MILLI
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RequestHead
import dev.comeback.driver.orNull
import dev.comeback.driver.shorter
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.Sender
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.client.utils.unwrapCancellationException
import io.ktor.http.content.OutgoingContent
import io.ktor.http.isSuccess
import io.ktor.utils.io.InternalAPI
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableJob
import kotlinx.coroutines.cancel
import kotlin.coroutines.Continuation
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.intrinsics.COROUTINE_SUSPENDED
import kotlin.coroutines.intrinsics.intercepted
import kotlin.coroutines.intrinsics.startCoroutineUninterceptedOrReturn
import kotlin.coroutines.intrinsics.suspendCoroutineUninterceptedOrReturn
import kotlin.coroutines.resumeWithException

/**
 * Sends [request] in the caller's own coroutine, as it would be sent without Comeback. That coroutine goes on when the attempt ends. If the attempt is ended
 * but does not stop, for instance because a plugin further in cannot be cancelled, the caller goes on without it, and what it brings is closed.
 */
internal class Attempt(
    private val loop: SendLoop,
    val request: HttpRequestBuilder,
) : OnItsWay,
    Continuation<HttpClientCall> {
    private val setup = loop.setup
    private val job get() = request.executionContext as CompletableJob
    private val limit = loop.limit
    private val watch = AttemptWatch(this, loop, limit)

    /** As layers further in see it. */
    val outer = OuterAttempt(facts.clientResendsOff, connectNanos(), limit.inactivityNanos, notedPath)

    private lateinit var caller: Continuation<HttpClientCall>
    private lateinit var ownContext: CoroutineContext
    private lateinit var layer: LayerElement

    /** The caller goes on. */
    private var isLeft = false

    override val context: CoroutineContext get() = ownContext

    /** The last of its requests. */
    @Volatile
    private var inEngine: EngineRequest? = null

    /** How many there are. */
    private var entered = 0

    private val earlier: Sequence<EngineRequest> get() = generateSequence(inEngine?.before) { it.before }

    /** The attempt reached its limit and was ended. */
    @Volatile
    var isCut: Boolean = false

    /** The attempt was given up; the call goes on with a fresh one. */
    @Volatile
    var isAbandoned: Boolean = false

    /** What it came to. */
    var call: HttpClientCall? = null
        private set

    /** As the caller gets it: Ktor frees it by itself. */
    var thrown: Throwable? = null
        private set

    /** What was tried before, if [call] is the answer. A request made from this one takes this attribute along, but gets another. */
    var report: RetryReport? = null

    /** [thrown], freed from any cancellation that carried it. */
    val failure: Throwable? get() = thrown?.unwrapCancellationException()

    val isPlainSuccess: Boolean get() = call?.response?.status?.isSuccess() == true

    val facts: DriverFacts get() = loop.facts

    /** The network's path when the attempt began. */
    val notedPath: Long get() = loop.noted.path

    /** How many requests were sent for it, those included that never entered the engine. */
    val sends: Int get() = maxOf(1, entered)

    private fun connectNanos(): Long? = shorter(limit.inactivityNanos, facts.connectTimeoutNanos)

    /** What it came to; thrown if it failed. [spentNanos] of what it may take are over. */
    suspend fun sentBy(
        sender: Sender,
        spentNanos: Long,
    ): HttpClientCall = suspendCoroutineUninterceptedOrReturn { start(sender, spentNanos, it) }

    private fun start(
        sender: Sender,
        spentNanos: Long,
        caller: Continuation<HttpClientCall>,
    ): Any? {
        val layer = LayerElement(outer, caller.context)
        this.layer = layer
        this.caller = caller
        ownContext = caller.context + layer
        watch.begin(spentNanos)
        val send: suspend () -> HttpClientCall = { sender.execute(request) }
        val before = layer.updateThreadContext(ownContext)
        val result =
            try {
                send.startCoroutineUninterceptedOrReturn(this)
            } catch (thrown: Throwable) {
                if (leave()) throw thrown
                cameLate(Result.failure(thrown))
                return COROUTINE_SUSPENDED
            } finally {
                layer.restoreThreadContext(ownContext, before)
            }
        if (result === COROUTINE_SUSPENDED || leave()) return result
        cameLate(Result.success(result as HttpClientCall))
        return COROUTINE_SUSPENDED
    }

    /** The attempt is over, on a thread that is still told to be inside it. */
    override fun resumeWith(result: Result<HttpClientCall>) {
        if (!leave()) return cameLate(result)
        OuterAttempt.inside(null) { caller.resumeWith(result) }
    }

    /** True once. */
    @Synchronized
    private fun leave(): Boolean {
        layer.isOver = true
        return !isLeft.also { isLeft = true }
    }

    private fun cameLate(result: Result<HttpClientCall>) {
        setup.alone.decrementAndGet()
        result.getOrNull()?.let { late -> orNull { late.cancel() } }
    }

    /** It was ended some time ago, and the caller waits no longer. */
    fun leaveAlone() {
        // A limit, so that attempts that do not stop cannot fill the memory.
        if (setup.alone.incrementAndGet() > MOST_ALONE || !leave()) {
            setup.alone.decrementAndGet()
            return
        }
        caller.intercepted().resumeWithException(timeout())
    }

    @OptIn(InternalAPI::class)
    override fun enters(request: HttpRequestBuilder) {
        // A copy of what was given up long ago.
        if (isCut || isAbandoned) throw CancellationException("Comeback ended this attempt")
        watch.goesOut()
        // A plugin may send several at once.
        synchronized(this) {
            entered++
            inEngine = setup.engine.entered(request, outer, facts, notedPath, loop.body, job, before = inEngine, loop.asksAgain)
        }
        request.body = loop.body.entering(request.body as OutgoingContent) { job.cancel("the body has changed", it) }
    }

    override fun headCame(response: HttpResponse) {
        inEngine?.headCame()
        watch.headCame(response)
    }

    override fun engineThrew(thrown: Throwable) {
        inEngine?.threw(thrown)
    }

    /** For how long a failed look-up is remembered against the next attempt. */
    val failedLookUpNanos: Long get() = inEngine?.failedLookUpNanos ?: FailedLookUps.cachedNanos()

    /** The request as it left; null if none did. */
    val wentOut: RequestHead? get() = inEngine?.request?.head(facts.keyHeader)

    /** What plugins further in sent for it before the last, told as if layers further in had sent it. */
    val earlierRequests: List<InnerRequest>
        get() {
            if (inEngine?.before == null) return emptyList()
            val before = OuterAttempt()
            for (request in earlier) before.request(loop.policy, head(request), keyIsMade = false).ended(request.sentNothing())
            return before.innerRequests
        }

    /** A key that replaced the call's key does not count. */
    private fun head(other: EngineRequest): RequestHead {
        val head = other.request.head(facts.keyHeader)
        return if (head.key == loop.head.key) head else head.withoutKey()
    }

    /**
     * Positive proof that no request of this attempt wrote its head; after this none will. [failure] is what reached this layer, or null if the attempt was
     * ended. A plugin further in may have thrown it because of something else; then it proves nothing.
     */
    fun sentNothing(failure: Throwable?): Boolean {
        val last = inEngine ?: return false
        if (loop.mayBeSentElsewhere || loop.hasSentBefore || earlier.any { !it.sentNothing() } ||
            outer.innerRequests.any { !it.sentNothing }
        ) {
            return false
        }
        val thrown = last.thrown
        val wasEnded = thrown == null || thrown is CancellationException
        val isFromEngine = if (failure == null) wasEnded else last.endedWith(failure)
        return isFromEngine && last.sentNothing()
    }

    /** [ask] is asked while nothing new goes out: is it proved that nothing was sent? */
    fun <T> whileHeld(
        ask: (sentNothing: Boolean) -> T,
        ends: (T) -> Boolean,
    ): T {
        val last = inEngine
        if (last == null || !last.isUnderWay || loop.mayBeSentElsewhere || loop.hasSentBefore || last.before != null ||
            outer.innerRequests.isNotEmpty()
        ) {
            return ask(false)
        }
        return last.whileHeld(ask, ends)
    }

    /** The attempt is over: it brought [call]. */
    fun answered(call: HttpClientCall) {
        isOver()
        if (isCut) {
            // It came in that moment, and has lost its body to it.
            orNull { call.cancel() }
            thrown = timeout()
            job.cancel()
        } else {
            this.call = call
            // Complete, it lives on with the response's body.
            job.complete()
            loop.staysActiveFor(job)
        }
    }

    /** The attempt is over, without an answer. */
    fun failed(thrown: Throwable) {
        isOver()
        this.thrown = if (isCut) timeout() else thrown
        job.cancel()
    }

    private fun isOver() {
        watch.end()
        if (isCut || isAbandoned) isOutOfTime()
    }

    /** Time ended it, so the connection it was on may be dead. */
    fun isOutOfTime() {
        inEngine?.connections?.areSuspect()
    }

    /** The limit was ours, so the caller hears of a timeout, as Ktor says it. */
    private fun timeout() = HttpRequestTimeoutException(request.url.buildString(), limit.hardNanos?.let { it / NANOS_PER_MILLI })

    /** Its response is not needed any more, and a wait must not hold its connection. */
    fun discard() {
        orNull { call?.cancel() }
        job.cancel()
    }

    fun end() = job.cancel(CancellationException("Comeback ended this attempt"))

    private companion object {
        const val MOST_ALONE = 64
    }
}
