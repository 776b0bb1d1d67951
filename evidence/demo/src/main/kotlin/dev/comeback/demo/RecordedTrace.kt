// Rides from recorded connectivity traces.
package dev.comeback.demo

import java.io.IOException
import java.math.BigDecimal
import java.nio.charset.StandardCharsets
import java.nio.file.Files
import java.nio.file.NoSuchFileException
import java.nio.file.Path
import java.util.SplittableRandom

/**
 * A recorded trace: one line `number,unit` of goodput for each second, unit `Mbits/sec`, `Kbits/sec` or `bits/sec`, a header
 * `Value,Unit` allowed on the first line. A second is dead when goodput is at most 0.1 Mbit/s.
 */
internal class RecordedTrace(
    private val file: Path,
    private val alive: List<Boolean>,
) {
    val seconds: Int get() = alive.size

    /** The part a demo shows: [length] seconds beginning with second [from] (the first is 0), or what the trace has of them. */
    fun window(
        from: Int,
        length: Int,
    ): Ride {
        if (from >=
            seconds
        ) {
            throw TraceProblem("$file: the trace has $seconds seconds (0 to ${seconds - 1}), so no window can begin at $from")
        }
        val end = minOf(from.toLong() + length, seconds.toLong()).toInt()
        return Ride("${file.fileName}, seconds $from to ${end - 1}", alive.subList(from, end))
    }

    /**
     * A window drawn by [seed], all alike probable, among those that are alive and dead for a tenth of their time each or more:
     * most of a recording is alive throughout and shows nothing. If none is, the first.
     */
    fun drawnWindow(
        seed: Long,
        length: Int,
    ): Ride {
        val deadBefore = alive.runningFold(0) { dead, isAlive -> if (isAlive) dead else dead + 1 }
        val eventful =
            (0..seconds - length).filter { from ->
                val dead = deadBefore[from + length] - deadBefore[from]
                dead * 10 >= length && (length - dead) * 10 >= length
            }
        return window(if (eventful.isEmpty()) 0 else eventful[SplittableRandom(seed).nextInt(eventful.size)], length)
    }

    companion object {
        fun read(file: Path): RecordedTrace {
            val lines =
                try {
                    // Not UTF-8: whatever is in the file must come out as a line to complain about.
                    Files.readAllLines(file, StandardCharsets.ISO_8859_1)
                } catch (problem: NoSuchFileException) {
                    throw TraceProblem("$file: there is no such file; expected a trace of lines like $EXAMPLE", problem)
                } catch (problem: IOException) {
                    throw TraceProblem("$file: cannot be read (${problem.message}); expected a trace of lines like $EXAMPLE", problem)
                }
            val body = if (lines.firstOrNull().isHeader()) 1 else 0
            if (lines.size == body) throw TraceProblem("$file:${body + 1}: found the end of the file, expected a line like $EXAMPLE")
            return RecordedTrace(file, lines.drop(body).mapIndexed { index, line -> isAlive(file, body + index + 1, line) })
        }

        private fun String?.isHeader() = this != null && trim().equals("value,unit", ignoreCase = true)

        private fun isAlive(
            file: Path,
            number: Int,
            line: String,
        ): Boolean {
            val fields = line.split(',').map { it.trim() }

            fun problem(expected: String) = TraceProblem("$file:$number: found ${quoted(line)}, expected $expected")

            if (fields.size != 2) throw problem("two fields, like $EXAMPLE")
            val value = fields[0].toBigDecimalOrNull()
            if (value == null || value.signum() < 0) throw problem("a number of 0 or more before the comma, like $EXAMPLE")
            val power = UNITS[fields[1].lowercase()] ?: throw problem("one of the units Mbits/sec, Kbits/sec, bits/sec after the comma")
            return value.scaleByPowerOfTen(power) > DEAD_AT_MOST
        }

        private fun quoted(line: String): String {
            val printable = line.map { if (it in ' '..'~') it else '?' }.joinToString("")
            return if (printable.length <= 40) "\"$printable\"" else "\"${printable.take(40)}…\""
        }

        private const val EXAMPLE = "\"1.58,Mbits/sec\""
        private val UNITS = mapOf("mbits/sec" to 6, "kbits/sec" to 3, "bits/sec" to 0)
        private val DEAD_AT_MOST = BigDecimal(100_000)
    }
}

/** A trace that cannot be used; the message names file, line, what was found and what was expected. */
internal class TraceProblem(
    message: String,
    cause: Throwable? = null,
) : Exception(message, cause)
