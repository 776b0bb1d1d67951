// The figures: successes, lags, orders.
package dev.comeback.demo

/** How one client came through one ride, or through several: the figures of the table and of `--json`. */
internal data class Score(
    val taps: Int,
    val succeeded: Int,
    /** Succeeded within [PROMPT_MILLIS] of lag. */
    val prompt: Int,
    val gaveUp: Int,
    /** Given up although the server had taken the order. */
    val gaveUpButOrdered: Int,
    val attempts: Int,
    val wakes: Int,
    val sends: Int,
    val replays: Int,
    val orders: Int,
    val duplicates: Int,
    /** Sorted; one for each success. */
    val lags: List<Long>,
) {
    val lagP50: Long? get() = percentile(lags, 50)
    val lagP90: Long? get() = percentile(lags, 90)

    operator fun plus(other: Score) =
        Score(
            taps + other.taps,
            succeeded + other.succeeded,
            prompt + other.prompt,
            gaveUp + other.gaveUp,
            gaveUpButOrdered + other.gaveUpButOrdered,
            attempts + other.attempts,
            wakes + other.wakes,
            sends + other.sends,
            replays + other.replays,
            orders + other.orders,
            duplicates + other.duplicates,
            (lags + other.lags).sorted(),
        )

    companion object {
        const val PROMPT_MILLIS = 2000L

        fun of(
            ride: Ride,
            stories: List<TapStory>,
            server: ServerCounts,
        ): Score {
            val (succeeded, gaveUp) = stories.partition { it.succeeded }
            val lags = succeeded.map { lag(ride, it) }.sorted()
            return Score(
                taps = stories.size,
                succeeded = succeeded.size,
                prompt = lags.count { it <= PROMPT_MILLIS },
                gaveUp = gaveUp.size,
                gaveUpButOrdered = gaveUp.count { it.tap.id in server.ordersByTap },
                attempts = stories.sumOf { it.attempts.size },
                wakes = stories.sumOf { it.wakes.size },
                sends = server.sends,
                replays = server.replays,
                orders = server.orders,
                duplicates = server.duplicates,
                lags = lags,
            )
        }

        /** From the link's return (or the tap, if the link was alive) to success. */
        private fun lag(
            ride: Ride,
            story: TapStory,
        ) = story.endedAt - ride.aliveFrom(story.tap.atMillis)
    }
}

/** The nearest rank: the smallest of the [sorted] values that is not below [percent] of them; null of none. */
internal fun percentile(
    sorted: List<Long>,
    percent: Int,
): Long? = if (sorted.isEmpty()) null else sorted[maxOf(0, (sorted.size * percent + 99) / 100 - 1)]
