// The first decision of a process, and what start-up costs the thread it happens on. Each run is a JVM of its own.
//
// How to read the first table: an app makes its Comeback, and a first call fails so many milliseconds later. "first decision" is how long that call
// then stood still until it knew what to do, "resume" how long it took to ask whether its wait is over, and "second" is the next call's. Later
// failures meet a library and classes that the warm-up in the background has loaded. "memory again" has nothing to do with Comeback: 2,000 pages of memory
// are written to, left alone for as long, and written to again. Where that takes longer after a longer pause, so does everything else a process has
// not done for a while, and it is the machine that is slow.
//
// The second table: what the making itself took of a fresh process where every class is loaded for the first time; "cpu" is the part the caller's
// thread worked, the rest it waited, most of it for a processor. "OkHttp alone" is a client without Comeback, "policy built" one RetryPolicy { … }, which
// needs the library and waits for it.
//
// Median and lowest of all runs, in milliseconds.
@file:OptIn(InternalComebackApi::class)

package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.RetryPolicy
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.okhttp.comeback
import okhttp3.OkHttpClient
import java.lang.management.ManagementFactory
import java.nio.ByteBuffer

private const val RUNS = 11

private const val PAGES = 2_000
private const val PAGE = 4_096

/** First decision, resume, second decision, memory. */
private const val FIGURES = 4
private val PAUSES = listOf(0L, 100L, 200L, 500L, 2_000L)

internal fun measureColdStart() {
    val head = arrayOf("after", "first decision", "lowest", "resume", "lowest", "second decision", "lowest", "memory again", "lowest")
    val decisions = Table(*head)
    // All pauses in turn, so that what else the machine does meets each alike.
    val rounds = List(RUNS) { PAUSES.map(::afterPause) }
    for ((index, pause) in PAUSES.withIndex()) {
        val runs = rounds.map { it[index] }
        decisions.row("$pause ms", *Array(2 * FIGURES) { if (it % 2 == 0) middle(runs, it / 2) else lowest(runs, it / 2) })
    }
    decisions.print()
    println()
    val making = Table("made first thing", "median", "lowest", "cpu", "lowest")
    val clients = List(RUNS) { freshProcess(ColdStart::class.java, "client") }
    val alone = List(RUNS) { freshProcess(ColdStart::class.java, "alone") }
    val policies = List(RUNS) { freshProcess(ColdStart::class.java, "policy") }
    making.add("Comeback", clients, 0)
    making.add("OkHttp client with it", clients, 2)
    making.add("OkHttp alone", alone, 0)
    making.add("policy built", policies, 0)
    making.print()
}

private fun afterPause(millis: Long): LongArray =
    freshProcess(ColdStart::class.java, "decision", millis.toString()) + freshProcess(ColdStart::class.java, "memory", millis.toString())

private fun Table.add(
    name: String,
    runs: List<LongArray>,
    column: Int,
) = row(name, middle(runs, column), lowest(runs, column), middle(runs, column + 1), lowest(runs, column + 1))

private fun lowest(
    runs: List<LongArray>,
    column: Int,
): String = millis(runs.minOf { it[column] })

private fun middle(
    runs: List<LongArray>,
    column: Int,
): String = millis(LongArray(runs.size) { runs[it][column] }.quantile(0.5))

internal object ColdStart {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val figures =
            when (arguments[0]) {
                "alone" -> cost { OkHttpClient.Builder().build() }
                "policy" -> cost { RetryPolicy { maxAttempts = 3 } }
                "client" -> clientWithComeback()
                "memory" -> listOf(memoryAgain(arguments[1].toLong()))
                else -> firstDecisions(arguments[1].toLong())
            }
        println(figures.joinToString(" "))
        // Without waiting for anything in the background.
        Runtime.getRuntime().halt(0)
    }

    private fun clientWithComeback(): List<Long> {
        var comeback: Comeback? = null
        val made = cost { comeback = Comeback { connectivity = ManualConnectivity() } }
        return made + cost { OkHttpClient.Builder().comeback(checkNotNull(comeback), RetryPolicy.READ).build() }
    }

    private fun firstDecisions(headStart: Long): List<Long> {
        val comeback = Comeback { connectivity = ManualConnectivity() }
        Thread.sleep(headStart)
        val call = CallSession(comeback, RetryPolicy.READ, null, RequestFacts("GET"))
        val next = CallSession(comeback, RetryPolicy.READ, null, RequestFacts("GET"))
        return listOf(nanosUntilStep { fail(call) }, nanosUntilStep { call.woken() }, nanosUntilStep { fail(next) })
    }

    /** How long it takes to write to pages that were written to before the pause. */
    private fun memoryAgain(pause: Long): Long {
        val memory = ByteBuffer.allocateDirect(PAGES * PAGE)
        write(memory)
        Thread.sleep(pause)
        val began = System.nanoTime()
        write(memory)
        return System.nanoTime() - began
    }

    private fun write(memory: ByteBuffer) {
        for (page in 0 until PAGES) memory.put(page * PAGE, 1)
    }

    private fun fail(call: CallSession): NextStep {
        call.noteAttempt()
        return call.failed(Outcome.failure(FailureKind.RESET))
    }

    private inline fun nanosUntilStep(ask: () -> NextStep): Long {
        val began = System.nanoTime()
        val step = ask()
        val nanos = System.nanoTime() - began
        check(step is NextStep.Sleep || step is NextStep.Go) { "the call ended: $step" }
        return nanos
    }

    /** How long it took, and how long of that this thread worked. */
    private fun cost(work: () -> Unit): List<Long> {
        val threads = ManagementFactory.getThreadMXBean()
        val worked = threads.currentThreadCpuTime
        val began = System.nanoTime()
        work()
        return listOf(System.nanoTime() - began, threads.currentThreadCpuTime - worked)
    }
}
