// What a call costs that succeeds at once: through OkHttp to a fake end, and through Ktor; and what a limit costs that is not reached. LoopbackSuccess.kt has real sockets.
//
// How to read the table: each benchmark is run twice. "avgt ns" is the time of many calls through their number, the mean of all iterations: what a busy
// thread pays, garbage and woken threads included; "lowest" is its lowest iteration, because other programs on the machine only ever add. "p50" and "p99" are
// of calls that are timed one by one; they include reading the clock, some 25 ns in every row. Bytes are what the calling thread allocates; they are
// steady. "more" is the difference to the interceptor that only proceeds, for Ktor to the bare client.
//
// Goals: a GET under DEFAULT at most 52 ns and 72 bytes over the interceptor that only proceeds; under READ at most 20 % slower by avgt, and 128 bytes more;
// a POST without key 1 µs and 1 KiB; Ktor's plugin at most a third of what HttpRequestRetry adds.
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

internal fun measureLimits() {
    val table = Table("a limit begun and ended", "clock", "threads", "avgt ns", "lowest")
    for (threads in listOf(1, 8)) {
        val results = Runner(options(Limits::class.java, Mode.AverageTime).threads(threads).build()).run()
        for (result in results.sortedBy { it.request }) {
            table.row(result.request, "$threads", "%.0f".format(result.average), "%.0f".format(result.lowest))
        }
    }
    table.print()
    println()
}

private fun options(
    benchmarks: Class<*>,
    mode: Mode,
) = OptionsBuilder().apply {
    include(benchmarks.name + "\\.")
    timeUnit(TimeUnit.NANOSECONDS)
    mode(mode)
    forks(2)
    // Ktor's coroutines are many classes deep: it takes long until all of them are compiled for good.
    warmupIterations(8)
    warmupTime(TimeValue.milliseconds(600))
    measurementIterations(12)
    measurementTime(TimeValue.milliseconds(150))
    addProfiler(GCProfiler::class.java)
    verbosity(VerboseMode.SILENT)
}

private fun measure(
    benchmarks: Class<*>,
    title: String,
    least: String,
) {
    val averages = Runner(options(benchmarks, Mode.AverageTime).build()).run()
    val samples = Runner(options(benchmarks, Mode.SampleTime).build()).run().associateBy { it.request to it.client }
    val table = Table(title, "client", "avgt ns", "more", "lowest", "more", "p50", "p99", "bytes", "more")
    for ((request, of) in averages.sortedBy { it.request }.groupBy { it.request }) {
        val base = of.single { it.client == least }
        for (result in of) {
            val sample = samples.getValue(request to result.client)
            table.row(
                request,
                result.client,
                "%.0f".format(result.average),
                "%+.0f".format(result.average - base.average),
                "%.0f".format(result.lowest),
                "%+.0f".format(result.lowest - base.lowest),
                "%.0f".format(sample.percentile(50.0)),
                "%.0f".format(sample.percentile(99.0)),
                "%.0f".format(result.bytes),
                "%+.0f".format(result.bytes - base.bytes),
            )
        }
    }
    table.print()
    println()
}

private val RunResult.request get() = params.benchmark.substringAfterLast('.')

private val RunResult.client get() = params.getParam("client")

private val RunResult.average get() = primaryResult.score

private val RunResult.lowest get() = iterations().minOf { it.primaryResult.score }

private fun RunResult.percentile(of: Double) = primaryResult.statistics.getPercentile(of)

private val RunResult.bytes get() = iterations().minOf { it.secondaryResults.getValue("gc.alloc.rate.norm").score }

private fun RunResult.iterations() = benchmarkResults.flatMap { it.iterationResults }
