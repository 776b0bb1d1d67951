// `cargo xtask demo`: the same ride and the same taps through two retrying clients, and what became of them.
package dev.comeback.demo

import java.io.FileDescriptor
import java.io.FileOutputStream
import java.io.IOException
import java.io.PrintStream
import java.nio.file.Files
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.system.exitProcess

fun main(arguments: Array<String>) {
    // The timelines are not ASCII, whatever the locale says.
    val out = PrintStream(FileOutputStream(FileDescriptor.out), true, "UTF-8")
    val err = PrintStream(FileOutputStream(FileDescriptor.err), true, "UTF-8")
    exitProcess(Demo(out, err, Terminal.detect()).run(arguments.toList()))
}

internal class Demo(
    private val out: PrintStream,
    private val err: PrintStream,
    private val terminal: Terminal,
) {
    private val paint = Paint(terminal.colours)

    /** Returns the exit code: 0, 1 if the demo cannot run here, 2 if it was asked for something impossible. */
    fun run(arguments: List<String>): Int =
        try {
            if (arguments.firstOrNull() == "serve") {
                serve(Options.parseServe(arguments.drop(1)))
            } else {
                val options = Options.parse(arguments)
                if (options.help) out.println(Options.HELP) else demonstrate(options)
            }
            SUCCESS
        } catch (problem: OptionProblem) {
            err.println(problem.message)
            BAD_INPUT
        } catch (problem: TraceProblem) {
            err.println(problem.message)
            BAD_INPUT
        } catch (problem: NoComeback) {
            err.println(problem.message)
            CANNOT_RUN
        } catch (problem: IOException) {
            err.println("The demo needs to listen on loopback and to write its files: ${problem.message}")
            CANNOT_RUN
        }

    /** Until the program is ended. */
    private fun serve(port: Int) {
        Shop(port, out).use { shop ->
            out.println("POST /orders with {\"tap\":7} and GET /orders at http://127.0.0.1:${shop.port}; Ctrl-C ends it.")
            Runtime.getRuntime().addShutdownHook(Thread { out.println(shop.totals()) })
            CountDownLatch(1).await()
        }
    }

    private fun demonstrate(options: Options) {
        val trace = options.trace?.let { RecordedTrace.read(it) }
        val rides = List(options.rides) { options.seed + it }.map { seed -> seed to rideOf(options, trace, seed) }
        requireComeback()
        val runs = runAll(options, rides)
        val shown = RideRun.worst(runs)
        if (runs.size > 1) {
            section("${runs.size} rides")
            ridesTable(runs, shown).forEach(out::println)
            out.println("  ◀ The worst for Comeback (${RideRun.WORST_MEANS}), shown below.")
        }
        show(shown)
        options.svg?.let { file ->
            Files.write(file, svgTimeline(shown).toByteArray())
            out.println("\n  Picture: $file")
        }
        if (options.json) out.println(jsonReport(shown))
    }

    private fun rideOf(
        options: Options,
        trace: RecordedTrace?,
        seed: Long,
    ): Ride =
        when {
            trace == null -> subwayRide(seed, options.seconds ?: Options.GENERATED_SECONDS)
            options.from != null -> trace.window(options.from, options.seconds ?: Options.TRACE_SECONDS)
            else -> trace.drawnWindow(seed, options.seconds ?: Options.TRACE_SECONDS)
        }

    private fun runAll(
        options: Options,
        rides: List<Pair<Long, Ride>>,
    ): List<RideRun> {
        val sides =
            rides.map { (seed, ride) ->
                SideBySide(seed, ride, taps(ride, seed, options.taps), options.lossLateMillis, options.returnLateMillis, options.client)
            }
        try {
            sides.forEach { it.warmUp() }
            val start = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(START_IN_MILLIS)
            sides.forEach { it.start(start) }
            val runs =
                Progress(
                    err,
                    terminal,
                    sides,
                    rides.maxByOrNull { it.second.seconds }!!.second,
                    start,
                ).use { sides.map { it.finish() } }
            val slip = sides.maxOf { it.slip }
            if (slip >
                SLIP_WORTH_TELLING
            ) {
                err.println("This machine was busy: a tap or the link came up to $slip ms late, for both clients alike.")
            }
            return runs
        } finally {
            sides.forEach { it.close() }
        }
    }

    private fun show(run: RideRun) {
        val ride = run.ride
        val outages = if (ride.outages.size == 1) "1 outage" else "${ride.outages.size} outages"
        section("Seed ${run.seed}, ${ride.name}: no signal for ${ride.deadSeconds.size} of ${ride.seconds} s, in $outages")
        for (client in run.clients) {
            val lines = wrapped("${client.name}: ${client.setUp}", terminal.width - 4)
            out.println("  " + lines.first().replaceFirst(client.name, paint.bold(client.name)))
            lines.drop(1).forEach { out.println("    $it") }
        }
        out.println()
        scoreTable(run.handWritten.score, run.comeback.score).forEach(out::println)
        out.println()
        wrapped(LAG_MEANS, terminal.width - 2).forEach { out.println("  ${paint.faint(it)}") }
        val timeline = TerminalTimeline(run, terminal.width, paint)
        for (client in run.clients) {
            section(client.name)
            timeline.lines(client).forEach(out::println)
        }
        out.println()
        timeline.legend().forEach(out::println)
    }

    private fun section(title: String) {
        out.println()
        out.println("  ${paint.bold(title)}")
        out.println()
    }

    private companion object {
        const val SUCCESS = 0
        const val CANNOT_RUN = 1
        const val BAD_INPUT = 2
        const val START_IN_MILLIS = 300L
        const val SLIP_WORTH_TELLING = 50L
    }
}
