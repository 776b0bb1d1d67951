// Taps in long windows that the limit serves and Comeback does not: in which window, and why.
package dev.comeback.arena

internal enum class Cause(
    val text: String,
    val field: String,
) {
    /** Until the last start the system has said offline, and an attempt fails at once. */
    TOLD_TOO_LATE("the system still says offline at the last start", "told_too_late"),

    /** `offline = auto` does not wait for a network that has been away for ten minutes. */
    LOSS_TOO_OLD("told so at once or parked no longer: the loss is 10 min old", "loss_too_old"),

    /** `cut_at_deadline` ends an attempt that began too late to be answered within READ's 20 s; the limit only has to begin in time. */
    CUT("cut at the deadline, less than an exchange after the start", "cut"),

    /** None is known. */
    OTHER("other", "other"),
}

/** Of one dead window. */
internal class Shortfall(
    val window: Span,
    val causes: Map<Cause, Int>,
)

internal fun shortfalls(
    link: Link,
    run: Run,
): List<Shortfall> =
    run
        .inLongWindows()
        .filter { it.isPossible && !it.succeeded }
        .groupBy { checkNotNull(link.trace.outageAt(it.moment.at)) }
        .map { (window, stories) -> Shortfall(window, stories.groupingBy { cause(link, it) }.eachCount()) }

private fun cause(
    link: Link,
    story: Story,
): Cause {
    val chance = link.firstOpenChance(story.moment.at)
    val deadline = story.moment.at + PATIENCE.inWholeMilliseconds
    val offline = link.knownOffline.find { story.endedAt in it.from..it.until }
    return when {
        chance > story.moment.at + LAST_START -> Cause.TOLD_TOO_LATE
        story.endedAt == deadline && chance + link.model.exchange > deadline -> Cause.CUT
        offline != null && story.endedAt - offline.from >= OLD -> Cause.LOSS_TOO_OLD
        else -> Cause.OTHER
    }
}

private const val OLD = 120_000L
