// What a call costs that succeeds at once: through OkHttp to a fake end, and through Ktor. LoopbackSuccess.kt has real sockets.
//
// How to read the table: each call is timed by itself; ns is the median of an iteration, of all iterations the lowest, because other programs on the
// machine only ever add. It includes reading the clock, some 25 ns in every row. Bytes are what the calling thread
// allocates; they are steady. "more" is the difference to the interceptor that only proceeds, for Ktor to the bare client.
//
// Goals: for a GET at most 60 ns and 128 bytes more, for a POST without key 1 µs and 1 KiB; Ktor's plugin at most a third of what HttpRequestRetry adds.
package dev.comeback.bench

import org.openjdk.jmh.annotations.Mode
import org.openjdk.jmh.profile.GCProfiler
import org.openjdk.jmh.results.RunResult
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.OptionsBuilder
import org.openjdk.jmh.runner.options.TimeValue
import org.openjdk.jmh.runner.options.VerboseMode
import java.util.concurrent.TimeUnit

internal fun measureSuccess(): Unit = measure(SuccessPath::class.java, "OkHttp, fake end", least = "proceeds")

internal fun measureKtorSuccess(): Unit = measure(KtorSuccessPath::class.java, "Ktor", least = "bare")

private fun measure(
    benchmarks: Class<*>,
    title: String,
    least: String,
) {
    val options =
        OptionsBuilder().apply {
            include(benchmarks.name + "\\.")
            timeUnit(TimeUnit.NANOSECONDS)
            mode(Mode.SampleTime)
            forks(2)
            // Ktor's coroutines are many classes deep: it takes long until all of them are compiled for good.
            warmupIterations(8)
            warmupTime(TimeValue.milliseconds(600))
            measurementIterations(12)
            measurementTime(TimeValue.milliseconds(150))
            addProfiler(GCProfiler::class.java)
            verbosity(VerboseMode.SILENT)
        }
    val table = Table(title, "client", "best ns", "more", "bytes", "more")
    for ((request, of) in Runner(options.build()).run().sortedBy { it.request }.groupBy { it.request }) {
        val lowest = of.single { it.client == least }
        for (result in of) {
            table.row(
                request,
                result.client,
                "%.0f".format(result.nanos),
                "%+.0f".format(result.nanos - lowest.nanos),
                "%.0f".format(result.bytes),
                "%+.0f".format(result.bytes - lowest.bytes),
            )
        }
    }
    table.print()
    println()
}

private val RunResult.request get() = params.benchmark.substringAfterLast('.')

private val RunResult.client get() = params.getParam("client")

private val RunResult.nanos get() = iterations().minOf { it.primaryResult.statistics.getPercentile(50.0) }

private val RunResult.bytes get() = iterations().minOf { it.secondaryResults.getValue("gc.alloc.rate.norm").score }

private fun RunResult.iterations() = benchmarkResults.flatMap { it.iterationResults }
