// How long it is from the network's return to the next attempt: from `restored()` being called to each waiting thread's next request leaving
// Comeback (a fake end of the chain notes it; no socket is involved).
//
// How to read the table: p50, p99 and max are over all threads of all rounds, in milliseconds; "best" is the lowest p99 of a round, what the machine
// can do when other programs leave it alone; "told" is how long `restored()` itself took, which is when the last thread was woken; "cpu" is what all
// of it took of the processors, which no other program changes much: on an idle machine max is about that by the number of processors. Parked calls
// wait for a network; backoff calls wait out a drawn wait, which the return ends. "session" is the core of it without OkHttp, "no call" what threads and their wakes cost by themselves. Goal: p99 below 5 ms.
@file:OptIn(InternalComebackApi::class)

package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryPolicy
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.Wakeup
import dev.comeback.okhttp.comeback
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import java.lang.management.ManagementFactory
import java.net.SocketException
import java.util.concurrent.CountDownLatch
import kotlin.concurrent.thread
import kotlin.time.Duration.Companion.seconds

private const val WARM_UP = 100
private const val MANY = 200
internal val THREADS = ManagementFactory.getThreadMXBean()
private const val WAIT_NANOS = 60_000_000_000L

/** One waiting call. Its attempts fail until the network is back. */
private class Waiter(
    private val failed: CountDownLatch,
    private val allBegan: CountDownLatch,
) {
    private var attempts = 0

    /** When the second attempt began. */
    var wokenAt = 0L
        private set

    /** What its thread had used of a processor by then. */
    var used = 0L
        private set

    /** True if this attempt succeeds. */
    fun attempt(): Boolean {
        val now = System.nanoTime()
        if (attempts++ > 0) {
            wokenAt = now
            used = THREADS.currentThreadCpuTime
            // As an attempt blocks on its socket. Else the table would show how long threads take to end.
            allBegan.countDown()
            allBegan.await()
            return true
        }
        failed.countDown()
        return false
    }
}

internal fun measureEdge() {
    val waits =
        RetryPolicy {
            base = 20.seconds
            cap = 20.seconds
            jitter = Jitter.NONE
            maxElapsed = 60.seconds
        }
    val table = Table("waiting calls", "threads", "rounds", "p50 ms", "p99", "max", "best", "told", "cpu")
    for ((threads, rounds) in listOf(1 to 500, MANY to 30)) {
        table.add("parked, OkHttp", threads, rounds, isParked = true) { okHttpCall(it, RetryPolicy.READ) }
        table.add("backoff, OkHttp", threads, rounds, isParked = false) { okHttpCall(it, waits) }
        table.add("parked, session", threads, rounds, isParked = true) { comeback -> { sessionCall(comeback, RetryPolicy.READ, it) } }
        table.add("no call at all", threads, rounds, isParked = true) { comeback -> { justWait(comeback, it) } }
    }
    table.print()
}

private fun Table.add(
    name: String,
    threads: Int,
    rounds: Int,
    isParked: Boolean,
    caller: (Comeback) -> (Waiter) -> Unit,
) {
    val connectivity = ManualConnectivity(concernsLoopback = true)
    Comeback { this.connectivity = connectivity }.use { comeback ->
        val call = caller(comeback)
        val returns =
            List(WARM_UP + rounds) {
                if (isParked) {
                    connectivity.available()
                    connectivity.lost()
                }
                networkReturns(connectivity, threads, call)
            }.drop(WARM_UP)
        val lags = returns.flatMap { it.lags.asList() }.toLongArray()
        row(
            name,
            threads.toString(),
            rounds.toString(),
            millis(lags.quantile(0.5)),
            millis(lags.quantile(0.99)),
            millis(lags.max()),
            millis(returns.minOf { it.lags.quantile(0.99) }),
            millis(LongArray(rounds) { returns[it].told }.quantile(0.5)),
            millis(LongArray(rounds) { returns[it].used }.quantile(0.5)),
        )
    }
}

private class Return(
    val lags: LongArray,
    val told: Long,
    val used: Long,
)

/** Lets [threads] calls fail and wait, and brings the network back. */
private fun networkReturns(
    connectivity: ManualConnectivity,
    threads: Int,
    call: (Waiter) -> Unit,
): Return {
    collectGarbage()
    val failed = CountDownLatch(threads)
    val allBegan = CountDownLatch(threads)
    val waiters = List(threads) { Waiter(failed, allBegan) }
    val callers = waiters.map { thread { call(it) } }
    failed.await()
    while (callers.any { it.state != Thread.State.TIMED_WAITING }) Thread.sleep(1)
    val usedBefore = callers.sumOf { THREADS.getThreadCpuTime(it.id) } + THREADS.currentThreadCpuTime
    val restored = System.nanoTime()
    connectivity.restored()
    val told = System.nanoTime() - restored
    val usedHere = THREADS.currentThreadCpuTime
    callers.forEach { it.join() }
    return Return(LongArray(threads) { waiters[it].wokenAt - restored }, told, waiters.sumOf { it.used } + usedHere - usedBefore)
}

private fun okHttpCall(
    comeback: Comeback,
    policy: RetryPolicy,
): (Waiter) -> Unit {
    val end =
        Interceptor { chain ->
            if (!checkNotNull(chain.request().tag(Waiter::class.java)).attempt()) throw SocketException("Connection reset")
            answer(chain.request())
        }
    val client =
        OkHttpClient
            .Builder()
            .comeback(comeback, policy)
            .addInterceptor(end)
            .build()
    return { waiter ->
        val request =
            Request
                .Builder()
                .url("http://localhost/")
                .tag(Waiter::class.java, waiter)
                .build()
        client.newCall(request).execute().close()
    }
}

private fun sessionCall(
    comeback: Comeback,
    policy: RetryPolicy,
    waiter: Waiter,
) {
    val session = CallSession(comeback, policy, null, RequestFacts("GET"))
    val wakeup = Wakeup()
    session.noteAttempt()
    while (!waiter.attempt()) {
        var step = session.failed(Outcome.failure(FailureKind.RESET))
        while (step is NextStep.Sleep) {
            session.await(step, wakeup)
            step = session.woken()
        }
        check(step is NextStep.Go) { "the call ended: $step" }
        session.noteAttempt()
    }
    session.succeeded()
}

private fun justWait(
    comeback: Comeback,
    waiter: Waiter,
) {
    val wakeup = Wakeup()
    comeback.subscribe { wakeup.wake() }.use {
        waiter.attempt()
        wakeup.await(WAIT_NANOS)
        waiter.attempt()
    }
}
