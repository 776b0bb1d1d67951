package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals
import kotlin.test.assertTrue

/** The built-in ride is what its documentation says. */
class SubwayRideTest {
    private val rides = (1L..2000L).map { subwayRide(it, 30) }

    @Test
    fun `a seed is always the same ride and another seed another one`() {
        assertEquals(rides[6].deadSeconds, subwayRide(7, 30).deadSeconds)
        assertNotEquals(subwayRide(7, 30).deadSeconds, subwayRide(8, 30).deadSeconds)
    }

    @Test
    fun `the ride of seed 1 stays what it was when its picture was drawn`() {
        assertEquals(PINNED, subwayRide(1, 30).outages.map { (it.from / 1000) to (it.until / 1000) })
    }

    @Test
    fun `a ride has its length, begins at a station and ends at one`() {
        for (length in listOf(12, 30, 120)) {
            for (seed in 1L..200L) {
                val ride = subwayRide(seed, length)
                assertEquals(length, ride.seconds)
                assertTrue(ride.outages.first().from in 3000..5000, "seed $seed")
                assertTrue(ride.outages.last().until <= (length - 4) * 1000L, "seed $seed")
            }
        }
    }

    @Test
    fun `seven outages in ten are tunnels of 4 to 9 s, all alike, the others flickers of 1 to 3 s`() {
        // The last outage of a ride may be cut.
        val lengths = rides.flatMap { ride -> ride.outages.dropLast(1).map { (it.until - it.from) / 1000 } }
        assertTrue(lengths.all { it in 1..9 })
        // Short outages fit more often, so the share is told from the first outage of each ride.
        val firsts = rides.map { ride -> ride.outages.first().let { (it.until - it.from) / 1000 } }
        assertShare(0.7, firsts.count { it >= 4 }, firsts.size)
        for (length in 4L..9L) assertShare(0.7 / 6, firsts.count { it == length }, firsts.size)
        for (length in 1L..3L) assertShare(0.3 / 3, firsts.count { it == length }, firsts.size)
    }

    @Test
    fun `between outages the link is alive for 1, 2 or 3 s, with probability 4, 4 and 2 in 10`() {
        val glimpses = rides.filter { it.outages.size > 2 }.map { (it.outages[1].from - it.outages[0].until) / 1000 }
        assertShare(0.4, glimpses.count { it == 1L }, glimpses.size)
        assertShare(0.4, glimpses.count { it == 2L }, glimpses.size)
        assertShare(0.2, glimpses.count { it == 3L }, glimpses.size)
    }

    /** Within four standard deviations. */
    private fun assertShare(
        expected: Double,
        count: Int,
        of: Int,
    ) {
        val deviation = Math.sqrt(expected * (1 - expected) / of)
        assertTrue(Math.abs(count.toDouble() / of - expected) < 4 * deviation, "$count of $of, expected a share of $expected")
    }

    private companion object {
        val PINNED = listOf(5L to 7L, 9L to 13L, 14L to 21L, 22L to 26L)
    }
}
