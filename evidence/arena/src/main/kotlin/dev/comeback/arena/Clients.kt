// How each client is configured: all of it is here, for a reader to check. Five attempts, windows of 1 to 8 s, an answer within 20 s.
package dev.comeback.arena

import arrow.resilience.Schedule
import arrow.resilience.retry
import dev.comeback.Comeback
import dev.comeback.Offline
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import dev.comeback.ktor.ktorPlugin
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
    val setUp: SimulatedPhone.() -> suspend (Tap) -> Unit,
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

/** Comeback as it comes. */
internal const val COMEBACK = "comeback"

internal val CLIENTS: List<Client> =
    listOf(
        Client(COMEBACK, "Ktor plugin, RetryPolicy.READ as it comes") { comebackPlugin(Signal.ALL) },
        Client("comeback retry { }", "retry(RetryPolicy.READ) { }: cannot give up an attempt in flight") {
            val comeback = comeback(Signal.ALL)
            val call: suspend (Tap) -> Unit = { tap -> comeback.retry(RetryPolicy.READ) { attempt(tap) } }
            call
        },
        Client("… without restart", "Ktor plugin that is not told that old connections are dead") { comebackPlugin(Signal.NO_PATH) },
        Client("… without parking", "Ktor plugin that hears of returns only") { comebackPlugin(Signal.RETURNS) },
        Client("… without the signal", "Ktor plugin that hears nothing of the network") { comebackPlugin(Signal.NONE) },
        Client("… with offline = park", "Ktor plugin, READ that parks however old the loss is") {
            comebackPlugin(Signal.ALL, RetryPolicy(RetryPolicy.READ) { offline = Offline.PARK })
        },
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
        Client("schedule of WorkManager", "needs a connected network; waits 30, 60, 120 s … between runs, at most 5 h; no time limit") {
            val call: suspend (Tap) -> Unit = { tap -> workManager(tap) }
            call
        },
        Client(
            "schedule of Datadog",
            "a tick after 25 s, each 10 % later up to 50 s, 60 s after an I/O error; none uploads while offline; no time limit",
        ) {
            val call: suspend (Tap) -> Unit = { tap -> datadog(tap) }
            call
        },
    )

private fun SimulatedPhone.comebackPlugin(
    signal: Signal,
    read: RetryPolicy = RetryPolicy.READ,
): suspend (Tap) -> Unit {
    val app: Comeback = comeback(signal)
    val http =
        ktor {
            install(app.ktorPlugin) {
                policy = read
            }
        }
    return { tap -> get(http, tap) }
}

/** What every app puts around a client that knows no limit of time. */
private fun within(call: suspend (Tap) -> Unit): suspend (Tap) -> Unit = { tap -> withTimeout(PATIENCE) { call(tap) } }

private fun SimulatedPhone.calling(http: HttpClient): suspend (Tap) -> Unit = within { tap -> get(http, tap) }

/**
 * `setConstraints(CONNECTED)` and the default backoff: exponential, 30 s, doubled after each run, at most 5 h (`WorkSpec.calculateNextRunTime` of
 * androidx.work). The backoff runs out first, then the constraint is waited for.
 */
private suspend fun SimulatedPhone.workManager(tap: Tap) {
    var wait = 30_000L
    while (true) {
        untilOnline()
        try {
            return attempt(tap)
        } catch (_: IOException) {
            // Result.retry()
        }
        delay(wait)
        wait = minOf(wait * 2, 5 * 3_600_000L)
    }
}

/**
 * `UploadFrequency.AVERAGE`: a step of 5 s, five of them at first, ten at most (`DataUploadConfiguration`, `DefaultUploadSchedulerStrategy` of
 * dd-sdk-android 2). The tap is the first tick; a tick without a network uploads nothing.
 */
private suspend fun SimulatedPhone.datadog(tap: Tap) {
    var wait = 25_000L
    while (true) {
        if (isOffline()) {
            wait = minOf(wait * 110 / 100, 50_000L)
        } else {
            try {
                return attempt(tap)
            } catch (_: IOException) {
                wait = 60_000L
            }
        }
        delay(wait)
    }
}
