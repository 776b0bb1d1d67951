// A finished ride, ready to be shown.
package dev.comeback.demo

/** A finished ride with both clients: what the table, the timelines, the picture and the JSON are drawn from. */
internal class RideRun(
    val seed: Long,
    val ride: Ride,
    val handWritten: ClientRun,
    val comeback: ClientRun,
    /** When the phone knew of a loss. Comeback hears it; the hand-written client does not listen. */
    val knownOffline: List<Outage>,
) {
    val clients: List<ClientRun> get() = listOf(handWritten, comeback)

    /** The ride and what outlasts it. */
    val endMillis: Long get() = maxOf(ride.seconds * Ride.SECOND, clients.flatMap { it.stories }.maxOfOrNull { it.endedAt } ?: 0)

    companion object {
        const val WORST_MEANS = "most duplicates, then most taps given up, then the longest lag p90"

        /** The ride that went worst for Comeback; of several such the first. */
        fun worst(runs: List<RideRun>): RideRun =
            runs.minWith(
                compareByDescending<RideRun> { it.comeback.score.duplicates }
                    .thenByDescending { it.comeback.score.gaveUp }
                    .thenByDescending { it.comeback.score.lagP90 ?: Long.MAX_VALUE },
            )
    }
}

/** One client's side of a ride. [setUp] says in words how it is configured. */
internal class ClientRun(
    val name: String,
    val setUp: String,
    ride: Ride,
    val stories: List<TapStory>,
    private val server: ServerCounts,
) {
    val score: Score = Score.of(ride, stories, server)

    /** Orders the server made of this tap. */
    fun ordersOf(story: TapStory): Int = server.ordersByTap[story.tap.id] ?: 0

    fun endingOf(story: TapStory): Ending {
        val orders = ordersOf(story)
        return when {
            orders > 1 -> Ending.ORDERED_TWICE
            story.succeeded -> Ending.SERVED
            orders == 1 -> Ending.GAVE_UP_BUT_ORDERED
            else -> Ending.GAVE_UP
        }
    }

    /** The stories in as few rows as a timeline needs, two in a row being at least [gapMillis] apart. */
    fun rows(gapMillis: Long): List<List<TapStory>> {
        val rows = mutableListOf<MutableList<TapStory>>()
        for (story in stories.sortedBy { it.tap.atMillis }) {
            val row = rows.firstOrNull { it.last().endedAt + gapMillis <= story.tap.atMillis }
            if (row == null) rows += mutableListOf(story) else row += story
        }
        return rows
    }
}

/** How a tap ended, as the timelines mark it. */
internal enum class Ending {
    SERVED,

    /** The server made two orders or more, whatever the client heard. */
    ORDERED_TWICE,
    GAVE_UP,

    /** The client said "failed", the server has the order. */
    GAVE_UP_BUT_ORDERED,
}
