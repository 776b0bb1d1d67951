// When the user taps "order".
package dev.comeback.demo

import java.util.SplittableRandom

/** One press of "order", the same for both clients: when it happens, and how long the server takes over it. */
internal data class Tap(
    val id: Int,
    val atMillis: Long,
    val serverMillis: Long,
)

/**
 * Draws [count] taps: half of them while the link is dead (one more if odd), half while it is alive, uniform over those
 * seconds, except for the last two of the ride. The server takes 150 to 400 ms, so some requests are cut after the order was
 * taken and before the answer came.
 */
internal fun taps(
    ride: Ride,
    seed: Long,
    count: Int,
): List<Tap> {
    val random = SplittableRandom(seed).split() // not the numbers that made the ride
    val last = maxOf(1, ride.seconds - QUIET_AT_THE_END)
    val dead = ride.deadSeconds.filter { it < last }
    val alive = ride.aliveSeconds.filter { it < last }

    fun anInstantOf(seconds: List<Int>) = seconds[random.nextInt(seconds.size)] * Ride.SECOND + random.nextInt(Ride.SECOND.toInt())

    val instants =
        List(count) { index ->
            val wanted = if (index % 2 == 0) dead else alive
            anInstantOf(wanted.ifEmpty { dead + alive })
        }
    return instants.sorted().mapIndexed {
        index,
        at,
        ->
        Tap(id = index + 1, atMillis = at, serverMillis = random.nextInt(150, 401).toLong())
    }
}

private const val QUIET_AT_THE_END = 2
