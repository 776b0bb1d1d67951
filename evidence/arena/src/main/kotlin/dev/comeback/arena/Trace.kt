// A connectivity trace: which seconds the link is alive, and what that looks like in numbers.
package dev.comeback.arena

import java.io.IOException
import java.nio.charset.StandardCharsets
import java.nio.file.Files
import java.nio.file.Path
import java.util.SplittableRandom

internal const val SECOND = 1000L

/** From [from] until [until], in milliseconds. */
internal data class Span(
    val from: Long,
    val until: Long,
) {
    val millis: Long get() = until - from
}

/** After its last second the link is alive for good. */
internal class Trace(
    val name: String,
    private val alive: BooleanArray,
) {
    val millis: Long get() = alive.size * SECOND

    /** The dead windows, in order. */
    val outages: List<Span> =
        buildList {
            var from = -1
            for (second in 0..alive.size) {
                val isAlive = second == alive.size || alive[second]
                if (!isAlive && from < 0) from = second
                if (isAlive && from >= 0) {
                    add(Span(from * SECOND, second * SECOND))
                    from = -1
                }
            }
        }

    fun isAlive(millis: Long): Boolean = alive.getOrElse((millis / SECOND).toInt()) { true }

    /** The dead window at this instant; null: the link is alive. */
    fun outageAt(millis: Long): Span? {
        if (isAlive(millis)) return null
        val index =
            outages.binarySearch {
                if (it.until <= millis) {
                    -1
                } else if (it.from > millis) {
                    1
                } else {
                    0
                }
            }
        return outages[index]
    }

    val statistics: Statistics
        get() {
            val lengths = outages.map { (it.millis / SECOND).toInt() }.sorted()
            val long = lengths.filter { it >= LONG_SECONDS }
            return Statistics(
                name,
                alive.size,
                lengths.sum() * 100.0 / alive.size,
                lengths.size,
                lengths.percentile(50) ?: 0,
                lengths.percentile(90) ?: 0,
                lengths.lastOrNull() ?: 0,
                long.size,
                long.sum(),
            )
        }

    companion object {
        /** A dead window of so many seconds and more is a long one. */
        const val LONG_SECONDS = 10
    }
}

/** Lengths in seconds. */
internal data class Statistics(
    val name: String,
    val seconds: Int,
    val deadPercent: Double,
    val outages: Int,
    val p50: Int,
    val p90: Int,
    val longest: Int,
    val longOutages: Int,
    val longSeconds: Int,
)

/**
 * What the generated trace was shaped after: NYU-METS (Mei et al., "Realtime mobile bandwidth prediction using LSTM neural network and Bayesian
 * fusion", Computer Networks 182, 2020; database ODbL 1.0, contents DbCL 1.0). A second is dead at 0.1 Mbit/s and below. Figures only: no second
 * of theirs is in here.
 */
internal val RECORDED =
    listOf(
        Statistics("NYU-METS 7 train", 12659, 10.04, 259, 1, 10, 106, 26, 781),
        Statistics("NYU-METS Q train", 7455, 9.34, 180, 2, 6, 68, 12, 339),
        Statistics("NYU-METS ferry", 1419, 25.23, 46, 1, 16, 216, 5, 295),
    )

/**
 * Lengths of time alive and dead in turn, drawn from the classes below and uniformly within one. Their shares are those of the recorded trains,
 * rounded: half of the outages last a second, one in ten 10 s and more; a quarter of the returns are over within 3 s.
 */
internal fun generatedTrace(
    seed: Long,
    seconds: Int = 4 * 3600,
): Trace {
    val random = SplittableRandom(seed)
    val alive = BooleanArray(seconds)
    var second = 0
    var isAlive = true
    while (second < seconds) {
        var share = random.nextDouble()
        val classes = if (isAlive) ALIVE else DEAD
        val (_, lengths) = classes.firstOrNull { (part, _) -> (share < part).also { share -= part } } ?: classes.last()
        repeat(random.nextInt(lengths.first, lengths.last + 1)) { if (second < seconds) alive[second++] = isAlive }
        isAlive = !isAlive
    }
    return Trace("generated, seed $seed", alive)
}

private val ALIVE = listOf(0.14 to 1..1, 0.14 to 2..3, 0.16 to 4..9, 0.20 to 10..29, 0.24 to 30..99, 0.12 to 100..300)
private val DEAD = listOf(0.50 to 1..1, 0.25 to 2..3, 0.15 to 4..9, 0.05 to 10..19, 0.035 to 20..49, 0.015 to 50..110)

/** Lines `number,unit` of goodput for each second, unit `Mbits/sec`, `Kbits/sec` or `bits/sec`; a header `Value,Unit` may come first. */
internal fun recordedTrace(file: Path): Trace {
    val lines =
        try {
            Files.readAllLines(file, StandardCharsets.ISO_8859_1)
        } catch (problem: IOException) {
            throw ArenaProblem("$file cannot be read (${problem.javaClass.simpleName}); expected a trace of lines like \"1.58,Mbits/sec\".")
        }
    val header = if (lines.firstOrNull()?.trim().equals("value,unit", ignoreCase = true)) 1 else 0
    if (lines.size == header) throw ArenaProblem("$file: the trace is empty; expected lines like \"1.58,Mbits/sec\".")
    val alive =
        lines.drop(header).mapIndexed { index, line ->
            val fields = line.split(',').map { it.trim() }
            val value = fields[0].toDoubleOrNull()?.takeIf { it >= 0 && it.isFinite() }
            val unit = UNITS[fields.getOrNull(1)?.lowercase()]
            if (fields.size != 2 || value == null || unit == null) {
                throw ArenaProblem("$file:${header + index + 1}: expected a number, a comma and a unit, like \"1.58,Mbits/sec\".")
            }
            value * unit > DEAD_AT_MOST
        }
    return Trace(file.fileName.toString(), alive.toBooleanArray())
}

private val UNITS = mapOf("mbits/sec" to 1e6, "kbits/sec" to 1e3, "bits/sec" to 1.0)
private const val DEAD_AT_MOST = 100_000.0

/** One sentence for the user. */
internal class ArenaProblem(
    message: String,
) : Exception(message)

/** Of a sorted list: the smallest value that [percent] of the values do not exceed. */
internal fun <T : Any> List<T>.percentile(percent: Int): T? = getOrNull((size * percent + 99) / 100 - 1)
