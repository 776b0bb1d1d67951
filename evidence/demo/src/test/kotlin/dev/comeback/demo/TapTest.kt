package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals
import kotlin.test.assertTrue

/** Taps fall inside and outside of outages, by the seed alone. */
class TapTest {
    private val ride = subwayRide(3, 30)

    @Test
    fun `half of the taps fall into dead seconds, one more if the number is odd`() {
        for ((count, dead) in listOf(24 to 12, 25 to 13, 1 to 1)) {
            val inDead = taps(ride, 3, count).count { (it.atMillis / 1000).toInt() in ride.deadSeconds }
            assertEquals(dead, inDead, "$count taps")
        }
    }

    @Test
    fun `a seed is always the same taps and another seed others`() {
        assertEquals(taps(ride, 3, 24), taps(ride, 3, 24))
        assertNotEquals(taps(ride, 3, 24), taps(ride, 4, 24))
    }

    @Test
    fun `taps come in order, none in the last two seconds, and the server takes 150 to 400 ms`() {
        val taps = taps(ride, 3, 500)
        assertEquals((1..500).toList(), taps.map { it.id })
        assertEquals(taps.sortedBy { it.atMillis }, taps)
        assertTrue(taps.all { it.atMillis in 0 until 28_000 })
        assertTrue(taps.all { it.serverMillis in 150..400 })
    }

    @Test
    fun `the shortest of rides can be tapped`() {
        for (seconds in 1..3) assertEquals(5, taps(Ride("short", List(seconds) { true }), 1, 5).size)
    }

    @Test
    fun `a ride that is alive or dead throughout is tapped all the same`() {
        assertEquals(10, taps(Ride("alive", List(20) { true }), 1, 10).size)
        assertEquals(10, taps(Ride("dead", List(20) { false }), 1, 10).size)
    }
}
