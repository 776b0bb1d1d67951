package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals

/** What a ride says about its link. */
class RideTest {
    private val ride = Ride("test", listOf(true, false, false, true, false))

    @Test
    fun `neighbouring dead seconds are one outage`() {
        assertEquals(listOf(Outage(1000, 3000), Outage(4000, 5000)), ride.outages)
        assertEquals(listOf(1, 2, 4), ride.deadSeconds)
        assertEquals(listOf(0, 3), ride.aliveSeconds)
    }

    @Test
    fun `the link returns at the end of its outage and is alive after the ride`() {
        assertEquals(999, ride.aliveFrom(999))
        assertEquals(3000, ride.aliveFrom(1000))
        assertEquals(3000, ride.aliveFrom(2999))
        assertEquals(3000, ride.aliveFrom(3000))
        assertEquals(5000, ride.aliveFrom(4500))
        assertEquals(70_000, ride.aliveFrom(70_000))
    }
}
