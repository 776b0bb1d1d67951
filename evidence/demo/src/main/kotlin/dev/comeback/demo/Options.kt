// The command line and its help.
package dev.comeback.demo

import java.nio.file.Files
import java.nio.file.InvalidPathException
import java.nio.file.Path

/** The ways to put Comeback to work that can ride. */
internal enum class Client(
    val option: String,
    val what: String,
) {
    OKHTTP("okhttp", "the OkHttp interceptor"),
    FACTORY("factory", "the call factory, which can give up one attempt"),
    KTOR("ktor", "the Ktor plugin, on Ktor's OkHttp engine"),
}

/** What was asked for on the command line. */
internal data class Options(
    val seed: Long = 1,
    val trace: Path? = null,
    /** First second of the trace to show; null: drawn by the seed. */
    val from: Int? = null,
    /** Length of the ride; null: the usual one, which differs for a trace. */
    val seconds: Int? = null,
    val taps: Int = 24,
    val rides: Int = 1,
    val lossLateMillis: Int = 5000,
    val returnLateMillis: Int = 500,
    val client: Client = Client.OKHTTP,
    val json: Boolean = false,
    val svg: Path? = null,
    val help: Boolean = false,
) {
    companion object {
        const val GENERATED_SECONDS = 30
        const val TRACE_SECONDS = 60
        const val SHOP_PORT = 8080
        private const val MAX_PORT = 65_535
        private const val MAX_THREADS = 4000

        val HELP =
            """
            |A subway ride on loopback: the same taps on "order" go through two real OkHttp clients at the same time, the usual
            |hand-written retry interceptor and Comeback. Each has a link of its own that dies and returns as the ride says. A dead link
            |swallows packets: connects hang until a SYN gets through, and what was sent waits until it is sent again. Once the phone
            |notices, connections are reset and attempts fail at once.
            |
            |Usage: cargo xtask demo [options]
            |       cargo xtask demo serve [--port N]    the server alone, for the Android sample or curl, on loopback (default $SHOP_PORT):
            |                                            POST /orders with {"tap":7} and GET /orders, a line for each request
            |
            |  --seed N            another ride, other taps (default 1)
            |  --taps N            taps per ride, half of them while the link is dead (default 24)
            |  --rides N           N rides at the same time, seeds --seed and following: a row for each, then the worst for Comeback
            |                      (${RideRun.WORST_MEANS})
            |  --trace FILE        ride a recorded trace: lines "number,unit" of goodput per second, unit Mbits/sec, Kbits/sec or
            |                      bits/sec; a second of at most 0.1 Mbit/s is dead
            |  --from SECOND       where in the trace to begin, its first second being 0 (default: drawn by the seed, among windows that
            |                      are dead and alive for a tenth of their time each or more)
            |  --seconds N         length of the ride (default $GENERATED_SECONDS, with --trace $TRACE_SECONDS)
            |  --loss-late-ms N    how late the phone notices a loss, and Comeback with it (default 5000); it never notices one that is
            |                      over by then
            |  --return-late-ms N  how late a phone that noticed is online again after the link's return (default 500)
            |  --client NAME       how Comeback is put to work (default okhttp):
            |${Client.entries.joinToString("\n|") { "                        %-10s %s".format(it.option, it.what) }}
            |  --json              print the figures as the last line on stdout: sends are the requests the server received, lag runs
            |                      from the link's return (or the tap, if the link was alive) to success, given-up taps left out;
            |                      with --rides the worst ride's
            |  --svg FILE          draw the timelines of the ride as a picture
            |  --help              this text
            |
            |Progress goes to stderr, results to stdout. Colours only on a terminal and without NO_COLOR; width from COLUMNS.
            """.trimMargin()

        /** The port that `serve` was given. */
        fun parseServe(arguments: List<String>): Int {
            val words = arguments.flatMap { it.split('=', limit = 2) }
            if (words.isEmpty()) return SHOP_PORT
            if (words.size > 2 || words[0] != "--port") {
                throw OptionProblem("serve takes --port and nothing else, not \"${arguments.joinToString(" ")}\".")
            }
            val text = words.getOrNull(1) ?: throw OptionProblem("--port needs a value; --help lists the options.")
            return text.toIntOrNull()?.takeIf { it in 0..MAX_PORT }
                ?: throw OptionProblem("--port takes a whole number from 0 to $MAX_PORT, not \"$text\".")
        }

        fun parse(arguments: List<String>): Options {
            val rest = ArrayDeque(arguments)
            var options = Options()
            while (rest.isNotEmpty()) {
                val argument = rest.removeFirst()
                val name = argument.substringBefore('=')
                val inline = if ('=' in argument) argument.substringAfter('=') else null

                fun value(): String =
                    inline ?: rest.removeFirstOrNull() ?: throw OptionProblem("$name needs a value; --help lists the options.")

                fun number(range: IntRange): Int {
                    val text = value()
                    return text.toIntOrNull()?.takeIf { it in range }
                        ?: throw OptionProblem("$name takes a whole number from ${range.first} to ${range.last}, not \"$text\".")
                }

                fun path(): Path {
                    val text = value()
                    return try {
                        Path.of(text)
                    } catch (_: InvalidPathException) {
                        throw OptionProblem("$name takes the name of a file, not \"$text\".")
                    }
                }

                fun flag() {
                    if (inline != null) throw OptionProblem("$name takes no value.")
                }

                options =
                    when (name) {
                        "--seed" -> {
                            val text = value()
                            options.copy(seed = text.toLongOrNull() ?: throw OptionProblem("--seed takes a whole number, not \"$text\"."))
                        }

                        "--trace" -> {
                            options.copy(trace = path())
                        }

                        "--from" -> {
                            options.copy(from = number(0..Int.MAX_VALUE))
                        }

                        "--seconds" -> {
                            options.copy(seconds = number(12..3600))
                        }

                        "--taps" -> {
                            options.copy(taps = number(1..500))
                        }

                        "--rides" -> {
                            options.copy(rides = number(1..50))
                        }

                        "--loss-late-ms" -> {
                            options.copy(lossLateMillis = number(0..60_000))
                        }

                        "--return-late-ms" -> {
                            options.copy(returnLateMillis = number(0..60_000))
                        }

                        "--client" -> {
                            val text = value()
                            val client = Client.entries.firstOrNull { it.option == text }
                            options.copy(
                                client =
                                    client ?: throw OptionProblem(
                                        "--client takes ${Client.entries.joinToString(" or ") { it.option }}, not \"$text\".",
                                    ),
                            )
                        }

                        "--svg" -> {
                            options.copy(svg = path())
                        }

                        "--json" -> {
                            options.copy(json = true).also { flag() }
                        }

                        "--help", "-h" -> {
                            options.copy(help = true).also { flag() }
                        }

                        else -> {
                            throw OptionProblem("There is no option \"$argument\"; --help lists the options.")
                        }
                    }
            }
            return options.checked()
        }

        private fun Options.checked(): Options {
            if (from != null && trace == null) throw OptionProblem("--from says where in a trace to begin, so it needs --trace FILE.")
            if (taps * rides * 2 > MAX_THREADS) {
                throw OptionProblem("--taps $taps in --rides $rides are ${taps * rides * 2} threads; at most $MAX_THREADS.")
            }
            val folder = svg?.toAbsolutePath()?.parent
            if (folder != null && !Files.isDirectory(folder)) throw OptionProblem("--svg: there is no folder $folder.")
            if (svg != null && Files.isDirectory(svg)) throw OptionProblem("--svg takes the name of a file, but $svg is a folder.")
            return this
        }
    }
}

/** A command line that cannot be obeyed; the message is one sentence for the user. */
internal class OptionProblem(
    message: String,
) : Exception(message)
