package dev.comeback.demo

/** A small finished ride that the tests of table, JSON and timelines draw: alive, 4 s dead, alive; three taps. */
internal object Example {
    private val ride = Ride("a \"test\" ride", List(12) { it !in 2..5 })
    private val before = Tap(1, 1900, 200)
    private val during = Tap(2, 3000, 200)
    private val after = Tap(3, 9000, 200)

    val run =
        RideRun(
            seed = 42,
            ride,
            handWritten =
                ClientRun(
                    HAND_WRITTEN,
                    "usual <retry>",
                    ride,
                    listOf(
                        TapStory(before, listOf(Attempt(1900, 2000, false), Attempt(6500, 6700, true)), emptyList(), 6700, true),
                        TapStory(during, listOf(Attempt(3000, 3001, false), Attempt(4000, 4001, false)), emptyList(), 4001, false),
                        TapStory(after, listOf(Attempt(9000, 9200, true)), emptyList(), 9200, true),
                    ),
                    ServerCounts(sends = 3, replays = 0, ordersByTap = mapOf(1 to 2, 3 to 1)),
                ),
            comeback =
                ClientRun(
                    COMEBACK,
                    "with keys & signal",
                    ride,
                    listOf(
                        TapStory(before, listOf(Attempt(1900, 2000, false), Attempt(6050, 6250, true)), listOf(6050), 6250, true),
                        TapStory(during, listOf(Attempt(3000, 3001, false), Attempt(6050, 6250, true)), listOf(6050), 6250, true),
                        TapStory(after, listOf(Attempt(9000, 9200, false)), emptyList(), 9200, false),
                    ),
                    ServerCounts(sends = 4, replays = 1, ordersByTap = mapOf(1 to 1, 2 to 1, 3 to 1)),
                ),
            knownOffline = listOf(Outage(5000, 6050)),
        )
}
