// Hears one call's events: what an attempt sent, whether the request's body failed by itself, and the call's cancel.
package dev.comeback.okhttp.internal

import dev.comeback.driver.LimitClock
import dev.comeback.driver.Wakeup
import dev.comeback.driver.okhttp.NotResentException
import dev.comeback.driver.okhttp.isRefused
import okhttp3.Call
import okhttp3.Connection
import okhttp3.EventListener
import okhttp3.HttpUrl
import java.io.IOException
import java.net.Proxy

/**
 * One per call, added at most once; [attemptBegins] forgets the attempt before. An attempt may hold several exchanges (redirects, authentication,
 * the client's own re-sends), and only what is true of all of them is proof.
 *
 * All events but [canceled] and those of racing connects come on the thread that runs the attempt. Of racing connects nothing is used: they may
 * outlive their attempt.
 */
internal class AttemptListener : EventListener() {
    /** Woken by the call's cancel. */
    val wakeup = Wakeup()

    /** A timer cancelled the call: the client's timeout, not the app. */
    @Volatile
    var isCancelledByTimer: Boolean = false
        private set

    private var isHeard = false
    private var exchangeSent = false
    private var earlierExchangeSent = false
    private var isBodyOpen = false
    private val reported = ArrayList<IOException>(1)

    /** Writing the request failed, rather than reading the response. */
    var requestFailed: Boolean = false
        private set

    /** The body's bytes, or a part of them, were asked for, in whatever attempt. Then they can be asked for again only if they are replayable. */
    @Volatile
    var wasBodyAskedFor: Boolean = false
        private set

    /** Request headers went out in this attempt, and the server is not known to have refused to look at them. */
    val mayHaveSent: Boolean
        get() = exchangeSent || earlierExchangeSent

    fun attemptBegins() {
        isHeard = false
        exchangeSent = false
        earlierExchangeSent = false
        isBodyOpen = false
        reported.clear()
        requestFailed = false
    }

    /**
     * Positive proof that nothing went out: the client's own layer was heard in this attempt, it reported this very failure, which is one of [causes],
     * and no headers were sent. A failure it did not report may be another client's, inside an interceptor; so may one that was only suppressed.
     */
    fun neverSent(causes: List<Throwable>): Boolean = isHeard && !mayHaveSent && hasReportedOneOf(causes)

    /** The body was being written and the socket did not fail: so the failure is the body's own. */
    fun bodyThrew(causes: List<Throwable>): Boolean = isBodyOpen && hasReportedOneOf(causes)

    private fun hasReportedOneOf(causes: List<Throwable>): Boolean = causes.any { cause -> reported.any { it === cause } }

    override fun canceled(call: Call) {
        // Nothing but its thread tells a timer's cancel from another one before the call is over: okio's timeouts all end on one, ours on a few.
        isCancelledByTimer = LimitClock.isEndingOnThisThread || Thread.currentThread().name == "Okio Watchdog"
        wakeup.wake()
    }

    override fun proxySelectStart(
        call: Call,
        url: HttpUrl,
    ) {
        isHeard = true
    }

    override fun proxySelectEnd(
        call: Call,
        url: HttpUrl,
        proxies: List<Proxy>,
    ) {
        isHeard = true
    }

    override fun dnsStart(
        call: Call,
        domainName: String,
    ) {
        isHeard = true
    }

    override fun connectionAcquired(
        call: Call,
        connection: Connection,
    ) {
        isHeard = true
    }

    override fun requestHeadersStart(call: Call) {
        isHeard = true
        earlierExchangeSent = mayHaveSent
        exchangeSent = true
        isBodyOpen = false
        requestFailed = false
    }

    override fun requestBodyStart(call: Call) {
        wasBodyAskedFor = true
        isBodyOpen = true
    }

    override fun requestBodyEnd(
        call: Call,
        byteCount: Long,
    ) {
        isBodyOpen = false
    }

    override fun requestFailed(
        call: Call,
        ioe: IOException,
    ) {
        isBodyOpen = false
        requestFailed = true
    }

    override fun responseHeadersStart(call: Call) {
        isBodyOpen = false
    }

    override fun responseFailed(
        call: Call,
        ioe: IOException,
    ) {
        isBodyOpen = false
    }

    override fun retryDecision(
        call: Call,
        exception: IOException,
        retry: Boolean,
    ) {
        val failure = (exception as? NotResentException)?.original ?: exception
        reported += failure
        if (isRefused(failure)) exchangeSent = false
    }
}
