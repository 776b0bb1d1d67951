package dev.comeback.demo

import org.junit.jupiter.api.Test
import org.junit.jupiter.api.condition.EnabledIfSystemProperty
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** A whole ride, with real sockets and real time, so only when asked for: `-Dcomeback.demo.ride=true`. */
@EnabledIfSystemProperty(named = "comeback.demo.ride", matches = "true")
class RideInRealTimeTest {
    @Test
    fun `comeback wakes on the return, orders nothing twice, and a cut order is answered from store`() {
        val ride = Ride("test", List(6) { it != 1 && it != 2 })
        // One is cut after the order was taken, the others fall into the outage.
        val taps = listOf(Tap(1, 800, 400)) + List(8) { Tap(it + 2, 1500 + it * 10L, 100) }
        val run =
            SideBySide(seed = 1, ride, taps, lossLateMillis = 300, returnLateMillis = 100).use { side ->
                side.warmUp()
                side.start(System.nanoTime() + 200_000_000)
                side.finish()
            }
        val score = run.comeback.score
        assertEquals(9, score.succeeded)
        assertEquals(9, score.orders)
        assertEquals(0, score.duplicates)
        assertEquals(1, score.replays, "$score ${run.knownOffline}")
        assertTrue(score.wakes >= 8, "${score.wakes} wakes")
        assertTrue(score.lags.max() < 3500, "${score.lags}")
        assertEquals(1, run.knownOffline.size)
        assertEquals(9, run.handWritten.score.taps)
    }
}
