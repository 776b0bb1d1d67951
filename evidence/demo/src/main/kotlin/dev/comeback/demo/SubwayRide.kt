// The built-in ride.
package dev.comeback.demo

import java.util.SplittableRandom

/**
 * The built-in ride: a hard half minute on a subway, made from a seed.
 *
 * Its shape follows what NYU-METS measured on a phone in New York's 7 and Q trains (Mei et al., Computer Networks 182, 2020;
 * data under ODbL 1.0). No second of theirs is in here; these are the four observations it is built on:
 *
 * - Outages come in two kinds. Most are flickers of 1 to 3 s (the median is 1 s); about one in five is a tunnel, 5 s or longer
 *   (half of those last 5 to 9 s).
 * - They come in clusters: nine of ten seconds are alive, but where one outage is, the next is near.
 * - After a tunnel the signal often lasts only a moment: a quarter to a third of those returns are over within 3 s.
 * - Long tunnels (up to 106 s) exist, but no retry that anybody waits for outlives them, so half a minute of one shows nothing.
 *
 * A ride is one such cluster: at a station (alive 3 to 5 s), then outages and glimpses in turn, then another station (the
 * last 4 s). An outage is a tunnel with probability 0.7 (uniform 4 to 9 s), else a flicker (uniform 1 to 3 s): more tunnels
 * than on a whole line, because flickers alone are what any retry survives. A glimpse is 1, 2 or 3 s with probability 0.4,
 * 0.4, 0.2. Whatever would reach into the last station is cut there.
 */
internal fun subwayRide(
    seed: Long,
    seconds: Int,
): Ride {
    // Specified by its algorithm, so a seed means the same ride on every JVM; and neighbouring seeds are unrelated.
    val random = SplittableRandom(seed)
    val alive = mutableListOf<Boolean>()

    repeat(random.nextInt(3, 6)) { alive += true }
    while (alive.size < seconds - LAST_STATION) {
        val outage = if (random.nextDouble() < TUNNEL_SHARE) random.nextInt(4, 10) else random.nextInt(1, 4)
        repeat(outage) { alive += false }
        repeat(GLIMPSES[random.nextInt(GLIMPSES.size)]) { alive += true }
    }
    return Ride("built-in subway ride", alive.take(seconds - LAST_STATION) + List(LAST_STATION) { true })
}

private const val TUNNEL_SHARE = 0.7
private const val LAST_STATION = 4
private val GLIMPSES = listOf(1, 1, 2, 2, 3)
