// The modelled link, second by second.
package dev.comeback.arena

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNull
import kotlin.test.assertTrue

class LinkTest {
    /** Alive for `+`, dead for `-`, a second each. */
    private fun link(seconds: String) = Link(Trace("test", BooleanArray(seconds.length) { seconds[it] == '+' }), LinkModel())

    @Test
    fun `a loss is noticed five seconds late and a return half a second late`() {
        assertEquals(listOf(Span(7_000, 10_500)), link("++--------++").knownOffline)
    }

    @Test
    fun `a loss that is over by the time it would be noticed is never heard of`() {
        assertEquals(emptyList(), link("++-----++").knownOffline)
    }

    @Test
    fun `offline lasts until a second after the last one of the trace`() {
        assertEquals(listOf(Span(6_000, 10_500)), link("+---------").knownOffline)
    }

    @Test
    fun `an attempt on a live link is answered after one exchange`() {
        val fate = link("++").attemptAt(100)
        assertEquals(Ending.ANSWERED, fate.ending)
        assertEquals(400, fate.at)
    }

    @Test
    fun `a connection attempt gets through with the first SYN that meets a live second`() {
        val link = link("+--++++")
        assertEquals(4_300, link.attemptAt(1_000).at, "the SYN at 3 s")
        assertEquals(3_800, link.attemptAt(2_500).at, "the SYN at 1 s")
    }

    @Test
    fun `an attempt that no SYN gets through for ends after the connect timeout`() {
        val fate = link("+-----------+++").attemptAt(1_000)
        assertEquals(Ending.CONNECT_TIMEOUT, fate.ending)
        assertEquals(11_000, fate.at)
    }

    @Test
    fun `an exchange that meets a dead second ends after the read timeout`() {
        val fate = link("+-++++++++++++").attemptAt(800)
        assertEquals(Ending.READ_TIMEOUT, fate.ending)
        assertEquals(10_800, fate.at)
    }

    @Test
    fun `an attempt fails at once while the system says offline, dead link or not`() {
        val link = link("+-------++")
        for (start in listOf(6_000L, 7_500L, 8_400L)) {
            val fate = link.attemptAt(start)
            assertEquals(Ending.UNREACHABLE, fate.ending)
            assertEquals(start, fate.at)
        }
        assertEquals(Ending.ANSWERED, link.attemptAt(8_500).ending)
    }

    @Test
    fun `the limit knows the first instant whose exchange meets no dead second`() {
        val link = link("+---+-++")
        assertEquals(700, link.firstChance(700))
        assertEquals(4_000, link.firstChance(701))
        assertEquals(6_000, link.firstChance(4_701))
    }

    @Test
    fun `for whoever has a system between, the first instant is also after its word`() {
        val link = link("+-------++")
        assertEquals(8_000, link.firstChance(2_000))
        assertEquals(8_500, link.firstOpenChance(2_000))
        assertEquals(500, link.firstOpenChance(500))
    }

    @Test
    fun `the dead window of an instant is found and a live instant has none`() {
        val trace = link("+--+-+").trace
        assertEquals(Span(1_000, 3_000), trace.outageAt(2_999))
        assertEquals(Span(4_000, 5_000), trace.outageAt(4_000))
        assertNull(trace.outageAt(3_000))
        assertTrue(trace.isAlive(99_000))
        assertFalse(trace.isAlive(1_000))
    }
}
