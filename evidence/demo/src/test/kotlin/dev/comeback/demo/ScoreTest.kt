package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertNull
import kotlin.test.assertSame

/** How a ride is scored, and which of several is the worst. */
class ScoreTest {
    @Test
    fun `a percentile is the nearest rank`() {
        val ten = (1L..10L).toList()
        assertEquals(5, percentile(ten, 50))
        assertEquals(9, percentile(ten, 90))
        assertEquals(10, percentile(ten, 91))
        assertEquals(1, percentile(ten, 0))
        assertEquals(10, percentile(ten, 100))
        assertEquals(7, percentile(listOf(7), 50))
        assertNull(percentile(emptyList(), 50))
    }

    @Test
    fun `lag runs from the tap if the link was alive, else from its return`() {
        // Tapped at 1.9 s while alive, served at 6.25 s; tapped at 3 s while dead, back at 6 s, served at 6.25 s.
        assertEquals(listOf(250L, 4350L), Example.run.comeback.score.lags)
    }

    @Test
    fun `a tap that was given up has no lag`() {
        assertEquals(listOf(200L, 4800L), Example.run.handWritten.score.lags)
    }

    @Test
    fun `successes, attempts, wakes and what the server saw are counted`() {
        val handWritten = Example.run.handWritten.score
        assertEquals(listOf(3, 2, 1, 1, 0), with(handWritten) { listOf(taps, succeeded, prompt, gaveUp, gaveUpButOrdered) })
        assertEquals(listOf(5, 0, 3, 0, 3, 1), with(handWritten) { listOf(attempts, wakes, sends, replays, orders, duplicates) })
        val comeback = Example.run.comeback.score
        assertEquals(listOf(3, 2, 1, 1, 1), with(comeback) { listOf(taps, succeeded, prompt, gaveUp, gaveUpButOrdered) })
        assertEquals(listOf(5, 2, 4, 1, 3, 0), with(comeback) { listOf(attempts, wakes, sends, replays, orders, duplicates) })
    }

    @Test
    fun `the sum of two scores has percentiles of all taps`() {
        val both = Example.run.handWritten.score + Example.run.comeback.score
        assertEquals(6, both.taps)
        assertEquals(listOf(200L, 250L, 4350L, 4800L), both.lags)
        assertEquals(250, both.lagP50)
    }

    @Test
    fun `the worst ride has the most duplicates, then the most given up, then the longest lag p90, then comes first`() {
        val ordinary = ride(lag = 300)
        val slow = ride(lag = 900)
        val givenUp = ride(lag = 100, gaveUp = 1)
        val duplicate = ride(lag = 50, orders = 2)
        assertSame(slow, RideRun.worst(listOf(ordinary, slow)))
        assertSame(givenUp, RideRun.worst(listOf(slow, givenUp, ordinary)))
        assertSame(duplicate, RideRun.worst(listOf(givenUp, duplicate, slow)))
        assertSame(slow, RideRun.worst(listOf(slow, ride(lag = 900))))
    }

    @Test
    fun `an ending tells what the server has from what the client believes`() {
        val (handWritten, comeback) = Example.run.clients
        assertEquals(listOf(Ending.ORDERED_TWICE, Ending.GAVE_UP, Ending.SERVED), handWritten.stories.map(handWritten::endingOf))
        assertEquals(listOf(Ending.SERVED, Ending.SERVED, Ending.GAVE_UP_BUT_ORDERED), comeback.stories.map(comeback::endingOf))
    }

    private fun ride(
        lag: Long,
        gaveUp: Int = 0,
        orders: Int = 1,
    ): RideRun {
        val ride = Ride("test", List(20) { true })
        val stories =
            List(10) { index -> TapStory(Tap(index + 1, 0, 0), emptyList(), emptyList(), lag, succeeded = index >= gaveUp) }
        val client = ClientRun("client", "", ride, stories, ServerCounts(10, 0, mapOf(1 to orders)))
        return RideRun(1, ride, client, client, emptyList())
    }
}
