// How each client is configured: all of it is here, for a reader to check. Five attempts, windows of 1 to 8 s, an answer within 20 s.
package dev.comeback.arena

import arrow.resilience.Schedule
import arrow.resilience.retry
import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import dev.comeback.ktor.ComebackRetry
import dev.failsafe.Failsafe
import io.github.resilience4j.core.IntervalFunction
import io.github.resilience4j.kotlin.retry.executeSuspendFunction
import io.github.resilience4j.retry.Retry
import io.github.resilience4j.retry.RetryConfig
import io.ktor.client.HttpClient
import io.ktor.client.plugins.HttpRequestRetry
import kotlinx.coroutines.delay
import kotlinx.coroutines.future.await
import kotlinx.coroutines.future.future
import kotlinx.coroutines.withTimeout
import java.io.IOException
import java.time.Duration
import kotlin.random.Random
import kotlin.time.Duration.Companion.seconds

private const val ATTEMPTS = 5
private const val FIRST_WAIT = 1_000L
private const val LONGEST_WAIT = 8_000L

/** How long a user waits for an answer, by every client but the two that work in the background. */
internal val PATIENCE = 20.seconds

/** A client under test: [setUp] makes it once, and what it answers with is called for each tap. */
internal class Client(
    val name: String,
    /** In a few words, for the picture. */
    val configuration: String,
    val setUp: Ground.() -> suspend (Tap) -> Unit,
)

/** What Comeback hears of the network. */
internal enum class Signal {
    /** Loss and return, as the system tells them. */
    ALL,

    /** Nothing at all. */
    NONE,

    /** That the network has returned, but not that it was away: nothing parks. */
    RETURNS,

    /** All, but not that old connections are dead: no attempt in flight is begun anew. */
    NO_PATH,
}

internal val CLIENTS: List<Client> =
    listOf(
        Client("comeback", "Ktor plugin, RetryPolicy.READ as it comes") { comebackPlugin(Signal.ALL) },
        Client("comeback retry { }", "retry(RetryPolicy.READ) { }: cannot give up an attempt in flight") {
            val comeback = comeback(Signal.ALL)
            val call: suspend (Tap) -> Unit = { tap -> comeback.retry(RetryPolicy.READ) { attempt(tap) } }
            call
        },
        Client("… without restart", "Ktor plugin that is not told that old connections are dead") { comebackPlugin(Signal.NO_PATH) },
        Client("… without parking", "Ktor plugin that hears of returns only") { comebackPlugin(Signal.RETURNS) },
        Client("… without the signal", "Ktor plugin that hears nothing of the network") { comebackPlugin(Signal.NONE) },
        Client(
            "Ktor HttpRequestRetry",
            "4 retries on exceptions and timeouts, exponentialDelay 1 s to 8 s, its own 1 s of jitter; within 20 s",
        ) {
            calling(
                ktor {
                    install(HttpRequestRetry) {
                        retryOnExceptionIf(maxRetries = ATTEMPTS - 1) { _, cause -> cause is IOException }
                        exponentialDelay(baseDelayMs = FIRST_WAIT, maxDelayMs = LONGEST_WAIT)
                    }
                },
            )
        },
        Client("Arrow Schedule", "exponential(1 s), at most 8 s, jittered(), recurs(4); within 20 s") {
            val schedule =
                Schedule
                    .exponential<Throwable>(1.seconds)
                    .delayed { _, wait -> minOf(wait, 8.seconds) }
                    .jittered()
                    .and(Schedule.recurs(ATTEMPTS - 1L))
            within { tap -> schedule.retry { attempt(tap) } }
        },
        Client("resilience4j", "5 attempts, ofExponentialRandomBackoff(1 s, 2, 0.5, 8 s); within 20 s") {
            val retry =
                Retry.of(
                    "arena",
                    RetryConfig
                        .custom<Unit>()
                        .maxAttempts(ATTEMPTS)
                        .retryExceptions(IOException::class.java)
                        .intervalFunction(IntervalFunction.ofExponentialRandomBackoff(FIRST_WAIT, 2.0, 0.5, LONGEST_WAIT))
                        .build(),
                )
            within { tap -> retry.executeSuspendFunction { attempt(tap) } }
        },
        Client("Failsafe", "4 retries, withBackoff(1 s, 8 s), withJitter(0.5), on a scheduler in virtual time; within 20 s") {
            val policy =
                dev.failsafe.RetryPolicy
                    .builder<Unit>()
                    .handle(IOException::class.java)
                    .withBackoff(Duration.ofMillis(FIRST_WAIT), Duration.ofMillis(LONGEST_WAIT))
                    .withJitter(0.5)
                    .withMaxRetries(ATTEMPTS - 1)
                    .build()
            val failsafe = Failsafe.with(policy).with(VirtualScheduler(scope))
            within { tap -> failsafe.getStageAsync { _ -> scope.future { attempt(tap) } }.await() }
        },
        Client("hand-written loop", "5 attempts, Thread.sleep of full jitter 1, 2, 4, 8 s (here a delay of the same length); within 20 s") {
            within { tap ->
                for (retry in 0 until ATTEMPTS) {
                    try {
                        attempt(tap)
                        break
                    } catch (failure: IOException) {
                        if (retry == ATTEMPTS - 1) throw failure
                        delay(Random.nextLong(minOf(FIRST_WAIT shl retry, LONGEST_WAIT) + 1))
                    }
                }
            }
        },
        Client("one attempt", "no retry at all") { within { tap -> attempt(tap) } },
        Client("schedule of WorkManager", "needs a connected network; waits 30, 60, 120, 240 s between 5 attempts; no time limit") {
            val call: suspend (Tap) -> Unit = { tap -> workManager(tap) }
            call
        },
        Client("schedule of Datadog", "10 s between uploads, 10 % more after each failure up to 20 s, none while offline; no time limit") {
            val call: suspend (Tap) -> Unit = { tap -> datadog(tap) }
            call
        },
    )

private fun Ground.comebackPlugin(signal: Signal): suspend (Tap) -> Unit {
    val app: Comeback = comeback(signal)
    val http =
        ktor {
            install(ComebackRetry) {
                comeback = app
                policy = RetryPolicy.READ
            }
        }
    return { tap -> get(http, tap) }
}

/** What every app puts around a client that knows no limit of time. */
private fun within(call: suspend (Tap) -> Unit): suspend (Tap) -> Unit = { tap -> withTimeout(PATIENCE) { call(tap) } }

private fun Ground.calling(http: HttpClient): suspend (Tap) -> Unit = within { tap -> get(http, tap) }

/** `setConstraints(CONNECTED)`, `setBackoffCriteria(EXPONENTIAL, 30 s)`: the backoff runs out first, then the constraint is waited for. */
private suspend fun Ground.workManager(tap: Tap) {
    for (run in 0 until ATTEMPTS) {
        untilOnline()
        try {
            return attempt(tap)
        } catch (failure: IOException) {
            if (run == ATTEMPTS - 1) throw failure
            delay(30_000L shl run)
        }
    }
}

/** Upload frequency AVERAGE: a step of 2 s, five steps at first, ten at most; a tick without a network uploads nothing. */
private suspend fun Ground.datadog(tap: Tap) {
    var wait = 10_000L
    while (true) {
        if (!isOffline()) {
            try {
                return attempt(tap)
            } catch (_: IOException) {
                // The batch stays for the next tick.
            }
        }
        delay(wait)
        wait = minOf(wait * 110 / 100, 20_000L)
    }
}
