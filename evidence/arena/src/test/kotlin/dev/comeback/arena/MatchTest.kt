// What the arena must show, on its generated trace.
package dev.comeback.arena

import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals
import kotlin.test.assertTrue

class MatchTest {
    private fun match(
        seed: Long,
        taps: Int,
        seconds: Int = 3600,
        clients: List<Client> = CLIENTS,
    ): Match {
        val trace = generatedTrace(seed, seconds)
        return match(Link(trace, LinkModel()), moments(trace, taps, seed), seed, clients)
    }

    private fun client(name: String) = CLIENTS.single { it.name == name }

    @Test
    fun `the same seed gives the same JSON and the same picture and another seed others`() {
        fun told(seed: Long) = match(seed, taps = 60).let { json(it) to picture(it) }
        val first = told(2)
        assertEquals(first, told(2))
        val other = told(3)
        assertNotEquals(first.first, other.first)
        assertNotEquals(first.second, other.second)
    }

    @Test
    fun `in long windows Comeback serves 95 of 100 taps that can be served, within 100 ms of the news and the exchange`() {
        val names = listOf("comeback", "comeback retry { }", "… without parking", "… without the signal")
        val match = match(seed = 1, taps = 800, seconds = 4 * 3600, clients = names.map(::client))
        val model = match.link.model
        val (plugin, function, drawing, deaf) = match.clients.map { score(it.inLongWindows()) }
        assertTrue(plugin.possible > 100, "${plugin.possible}")
        for (score in listOf(plugin, function)) assertTrue(score.percentOfPossible!! >= 95, "$score")
        // The third one's waits are drawn, not parked: an edge ends them too.
        for (score in listOf(plugin, function, drawing)) {
            assertTrue(score.lagP50!! <= model.returnLate + model.exchange + 100, "$score")
            assertTrue(score.lagP90!! <= model.returnLate + model.exchange + 100, "$score")
        }
        // Whatever it misses has a reason that its policy or the system gives.
        val reasons = shortfalls(match.link, match.clients.first()).flatMap { it.causes.keys }
        assertTrue(Cause.OTHER !in reasons, "$reasons")
        // What makes the difference is the signal.
        assertTrue(deaf.percentOfPossible!! < 95, "$deaf")
        assertTrue(deaf.lagP50!! > model.returnLate + model.exchange + 100, "$deaf")
    }

    @Test
    fun `a loss older than ten minutes is not waited for, unless the policy parks`() {
        val trace = Trace("one long window", BooleanArray(780) { it !in 20 until 680 })
        val moments = List(15) { Moment(660_500L + it * 1_000, isInLongWindow = true) }
        val clients = listOf("comeback", "… with offline = park").map(::client)
        val match = match(Link(trace, LinkModel()), moments, seed = 1, clients)
        val (asItComes, parks) = match.clients.map { it.inLongWindows() }
        assertTrue(match.limit.stories.all { it.succeeded })
        assertTrue(parks.filter { it.moment.at > 661_000 }.all { it.succeeded })
        assertTrue(asItComes.all { !it.succeeded && it.endedAt == it.moment.at })
        assertEquals(
            mapOf(Cause.TOLD_TOO_LATE to 1, Cause.LOSS_TOO_OLD to 14),
            shortfalls(match.link, match.clients.first()).single().causes,
        )
    }

    @Test
    fun `no client that answers in time beats the limit, and none sends more than five requests`() {
        val inTime = CLIENTS.filterNot { it.name.startsWith("schedule of") }
        val match = match(seed = 5, taps = 200, clients = inTime)
        for (run in match.clients) {
            for ((story, best) in run.stories.zip(match.limit.stories)) {
                if (story.succeeded) assertTrue(best.succeeded && story.endedAt >= best.endedAt, "${run.name} at ${story.moment.at}")
                assertTrue(story.endedAt - story.moment.at <= PATIENCE.inWholeMilliseconds, run.name)
                // Comeback does not count what failed at once while offline.
                if (!run.name.startsWith("comeback") && !run.name.startsWith("…")) assertTrue(story.sends in 1..5, run.name)
            }
        }
    }

    @Test
    fun `every second tap falls in a dead window of ten seconds and more`() {
        val trace = generatedTrace(7)
        val moments = moments(trace, 500, 7)
        assertEquals(250, moments.count { it.isInLongWindow })
        for (moment in moments) if (moment.isInLongWindow) assertTrue(trace.outageAt(moment.at)!!.millis >= 10_000)
        assertEquals(moments.sortedBy { it.at }, moments)
    }

    @Test
    fun `a tap that is given up counts as endless in the lag over all taps`() {
        fun story(lag: Long?) = Story(Moment(0, true), 0, lag != null, lag ?: 9, 1, 0, true)
        val score = score(listOf(story(5), story(7), story(null), story(null)))
        assertEquals(5, score.lagP50)
        assertEquals(7, score.lagAllP50)
        assertEquals(null, score.lagAllP90)
        assertEquals(9, score.failureP50)
        assertEquals(50.0, score.percentOfPossible)
    }

    @Test
    fun `the picture has a lane for every client and no script`() {
        val svg = picture(match(seed = 2, taps = 40, clients = CLIENTS.take(3)))
        assertTrue(svg.startsWith("<svg ") && svg.endsWith("</svg>\n"))
        for (client in CLIENTS.take(3)) assertTrue(svg.contains(">${client.name}</text>"), client.name)
        assertTrue("<script" !in svg && "NaN" !in svg)
    }
}
