// The first decision of a process, and what start-up costs the thread it happens on. Each run is a JVM of its own.
//
// How to read the first table: an app makes its Comeback, and a first call fails so many milliseconds later. "first decision" is how long that call
// then stood still until it knew what to do, "resume" how long it took to ask whether its wait is over, and "second" is the next call's. Later failures meet a library that the warm-up in the background
// has loaded. The second table: what the making itself took of a fresh process where every class is loaded for the first time; "cpu" is the part the
// caller's thread worked, the rest it waited, most of it for a processor. "OkHttp alone" is a client without Comeback, "policy built" one
// RetryPolicy { … }, which needs the library and waits for it.
//
// Median and lowest of all runs, in milliseconds.
@file:OptIn(InternalComebackApi::class)

package dev.comeback.bench

import dev.comeback.CallSession
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.NextStep
import dev.comeback.Outcome
import dev.comeback.RequestFacts
import dev.comeback.RetryPolicy
import dev.comeback.okhttp.comeback
import okhttp3.OkHttpClient
import java.io.File
import java.lang.management.ManagementFactory

private const val RUNS = 11
private val HEAD_STARTS = listOf(0L, 100L, 200L, 500L, 2_000L)

internal fun measureColdStart() {
    val decisions = Table("fails after", "first decision", "lowest", "resume", "lowest", "second decision", "lowest")
    for (headStart in HEAD_STARTS) {
        val runs = List(RUNS) { freshProcess("decision", headStart.toString()) }
        decisions.row(
            "$headStart ms",
            middle(runs, 0),
            lowest(runs, 0),
            middle(runs, 1),
            lowest(runs, 1),
            middle(runs, 2),
            lowest(runs, 2),
        )
    }
    decisions.print()
    println()
    val making = Table("made first thing", "median", "lowest", "cpu", "lowest")
    val clients = List(RUNS) { freshProcess("client") }
    val alone = List(RUNS) { freshProcess("alone") }
    val policies = List(RUNS) { freshProcess("policy") }
    making.add("Comeback", clients, 0)
    making.add("OkHttp client with it", clients, 2)
    making.add("OkHttp alone", alone, 0)
    making.add("policy built", policies, 0)
    making.print()
}

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

/** Runs [ColdStart] in a JVM of its own and reads its figures. */
private fun freshProcess(vararg arguments: String): LongArray {
    val java = File(System.getProperty("java.home"), "bin/java").path
    val command = listOf(java, "-cp", System.getProperty("java.class.path"), ColdStart::class.java.name) + arguments
    val process = ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    val said = process.inputStream.bufferedReader().readText()
    check(process.waitFor() == 0) { "a fresh process failed: $said" }
    return said
        .trim()
        .split(' ')
        .map { it.toLong() }
        .toLongArray()
}

internal object ColdStart {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val figures =
            when (arguments[0]) {
                "alone" -> cost { OkHttpClient.Builder().build() }
                "policy" -> cost { RetryPolicy { maxAttempts = 3 } }
                "client" -> clientWithComeback()
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
