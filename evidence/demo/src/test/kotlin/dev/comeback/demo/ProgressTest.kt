package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals

/** What a waiting reader is told. */
class ProgressTest {
    private val ride = Ride("test", List(10) { it != 3 })
    private val lanes = listOf(LaneProgress(served = 4, gaveUp = 1, underWay = 2), LaneProgress(served = 5, gaveUp = 0, underWay = 3))

    @Test
    fun `of one ride the line tells the second, the signal and both clients`() {
        assertEquals(
            "second 3 of 10, no signal | served/gave up/under way: hand-written 4/1/2, comeback 5/0/3",
            progressLine(3500, ride, listOf(lanes)),
        )
        assertEquals("second 4 of 10, signal", progressLine(4000, ride, listOf(lanes)).substringBefore(" |"))
    }

    @Test
    fun `of several rides the line tells the sums`() {
        assertEquals(
            "second 3 of 10, 2 rides | served/gave up/under way: hand-written 8/2/4, comeback 10/0/6",
            progressLine(3500, ride, listOf(lanes, lanes)),
        )
    }

    @Test
    fun `after the ride the last calls are waited for`() {
        assertEquals("the ride is over, last calls", progressLine(10_000, ride, listOf(lanes)).substringBefore(" |"))
    }
}
