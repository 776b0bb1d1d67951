// What one question to the core costs from Kotlin: through the generated binding into Rust and back.
//
// Every call of the loop below goes through all the questions, as a driver asks them, and each question has its own stopwatch. How to read the
// table: "best" is the lowest of all rounds' medians, because other programs on the machine only ever add; "usual" is the median of all rounds, p99
// that of the best one, all in µs. Bytes are what the JVM allocated for one question (steady). A decision should cost at most 30 µs.
//
// Between rounds garbage is collected: JNA keeps every structure in a map until its memory is freed, and in a loop without end it is that map, grown
// as in no app, that would be measured.
//
// The second table says which layer a decision's time and bytes are spent in, by sampling (Flight Recorder): a sample belongs to the layer of its
// innermost frame that is in one; what the JDK does for a layer counts as that layer's.
@file:OptIn(InternalComebackApi::class)

package dev.comeback.bench

import com.sun.management.ThreadMXBean
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.RetryPolicy
import dev.comeback.Subscription
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.Time
import dev.comeback.driver.Wakeup
import java.lang.management.ManagementFactory
import kotlin.random.Random

private const val WARM_UP = 3_000
private const val ROUNDS = 100
private const val CALLS = 100
private const val UNEVEN_BYTES = 64 * 1024
private var uneven = ByteArray(0)
private val RESET = Outcome.failure(FailureKind.RESET)

/** Stands where it is put, so that the loop need not wait for its waits. */
private class SetTime : Time {
    var now = 0L

    override fun nanos(): Long = now

    override fun wallMillis(): Long = 0

    override fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean = throw UnsupportedOperationException("nobody waits here")

    override fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription = throw UnsupportedOperationException("nobody waits here")
}

private enum class Question(
    val text: String,
) {
    FIRST("first failure: begin and decide"),
    DECIDE("later failure: decide"),
    EARLY("resume, asked too early: sleep on"),
    GO("resume: go"),
    INTERRUPT("interrupt: keep"),
    HUB("hub event: restored"),
}

private class Stopwatch(
    calls: Int,
) {
    private val threads = ManagementFactory.getThreadMXBean() as ThreadMXBean
    private val nanos = Question.entries.associateWith { LongArray(calls) }
    private val bytes = Question.entries.associateWith { LongArray(calls) }
    private var call = 0

    /** What reading the counter allocates. */
    private val overhead = LongArray(calls) { -threads.currentThreadAllocatedBytes + threads.currentThreadAllocatedBytes }.quantile(0.5)

    fun begin(call: Int) {
        this.call = call
    }

    inline fun <T> time(
        question: Question,
        ask: () -> T,
    ): T {
        val before = threads.currentThreadAllocatedBytes
        val began = System.nanoTime()
        val answer = ask()
        nanos.getValue(question)[call] = System.nanoTime() - began
        bytes.getValue(question)[call] = threads.currentThreadAllocatedBytes - before - overhead
        return answer
    }

    fun nanos(
        question: Question,
        share: Double,
    ): Long = nanos.getValue(question).quantile(share)

    fun bytes(question: Question): Long = bytes.getValue(question).quantile(0.5)
}

internal fun measureDecision() {
    val time = SetTime()
    val hub = ManualConnectivity(time).apply { noneAtStart() }
    Comeback { this.time = time }.use { comeback ->
        comeback.selfCheck()
        val loop = { calls: Int, stopwatch: Stopwatch? -> repeat(calls) { askEverything(comeback, time, hub, it, stopwatch) } }
        loop(WARM_UP, null)
        val rounds =
            List(ROUNDS) {
                collectGarbage()
                Stopwatch(CALLS).also { loop(CALLS, it) }
            }
        val table = Table("question", "best µs", "usual", "p99", "bytes")
        for (question in Question.entries) {
            val best = rounds.minBy { it.nanos(question, 0.5) }
            val usual = LongArray(ROUNDS) { rounds[it].nanos(question, 0.5) }.quantile(0.5)
            table.row(
                question.text,
                micros(best.nanos(question, 0.5)),
                micros(usual),
                micros(best.nanos(question, 0.99)),
                grouped(best.bytes(question)),
            )
        }
        table.print()
        println()
        printLayers("dev.comeback.driver.CallSession", "failed") {
            repeat(3 * ROUNDS) {
                collectGarbage()
                repeat(CALLS) { call ->
                    askEverything(comeback, time, hub, call, null)
                    // The JVM samples where one of its buffers is full; in a loop that always allocates the same that would always be the same place.
                    uneven = ByteArray(Random.nextInt(UNEVEN_BYTES))
                }
            }
        }
    }
}

/** And lets JNA forget what was collected. */
internal fun collectGarbage() {
    System.gc()
    Thread.sleep(5)
}

private fun askEverything(
    comeback: Comeback,
    time: SetTime,
    hub: ManualConnectivity,
    call: Int,
    stopwatch: Stopwatch?,
) {
    fun <T> timed(
        question: Question,
        ask: () -> T,
    ): T = if (stopwatch == null) ask() else stopwatch.time(question, ask)

    stopwatch?.begin(call)
    time.now = 0
    val session = CallSession(comeback, RetryPolicy.DEFAULT, null, RequestFacts("GET"), seed = call.toLong())
    session.noteAttempt()
    val sleep = timed(Question.FIRST) { session.failed(RESET) } as NextStep.Sleep
    check(timed(Question.EARLY) { session.woken() } is NextStep.Sleep)
    time.now = sleep.askAt
    check(timed(Question.GO) { session.woken() } is NextStep.Go)
    session.noteAttempt()
    check(timed(Question.INTERRUPT) { session.interrupted(sentNothing = false, bodyUntouched = false) } is NextStep.Keep)
    check(timed(Question.DECIDE) { session.failed(RESET) } is NextStep.Sleep)
    timed(Question.HUB) { hub.restored() }
}
