// What a client's stories come to, in numbers.
package dev.comeback.arena

/** Times in milliseconds. Null: there is none, or it is endless. */
internal data class Score(
    val taps: Int,
    val succeeded: Int,
    /** Taps that the limit serves. */
    val possible: Int,
    /** Of those, how many were served. */
    val servedOfPossible: Int,
    val lagP50: Long?,
    val lagP90: Long?,
    val lagP99: Long?,
    /** Over all taps, a given-up one counted as endless. */
    val lagAllP50: Long?,
    val lagAllP90: Long?,
    val sendsPerRequest: Double,
    val deadSends: Int,
    /** From a tap to the failure that is told, over the given-up ones. The limit tells nobody. */
    val failureP50: Long?,
    val failureP90: Long?,
) {
    val gaveUp: Int get() = taps - succeeded

    /** Null if the limit serves none. */
    val percentOfPossible: Double? get() = if (possible == 0) null else servedOfPossible * 100.0 / possible
}

internal fun score(stories: List<Story>): Score {
    val lags = stories.mapNotNull { it.lag }.sorted()
    val all = stories.map { it.lag ?: Long.MAX_VALUE }.sorted()
    val failures = stories.filter { !it.succeeded && it.sends > 0 }.map { it.endedAt - it.moment.at }.sorted()
    val possible = stories.filter { it.isPossible }
    return Score(
        taps = stories.size,
        succeeded = lags.size,
        possible = possible.size,
        servedOfPossible = possible.count { it.succeeded },
        lagP50 = lags.percentile(50),
        lagP90 = lags.percentile(90),
        lagP99 = lags.percentile(99),
        lagAllP50 = all.percentile(50)?.takeIf { it != Long.MAX_VALUE },
        lagAllP90 = all.percentile(90)?.takeIf { it != Long.MAX_VALUE },
        sendsPerRequest = if (stories.isEmpty()) 0.0 else stories.sumOf { it.sends }.toDouble() / stories.size,
        deadSends = stories.sumOf { it.deadSends },
        failureP50 = failures.percentile(50),
        failureP90 = failures.percentile(90),
    )
}

internal fun Run.uniform(): List<Story> = stories.filterNot { it.moment.isInLongWindow }

internal fun Run.inLongWindows(): List<Story> = stories.filter { it.moment.isInLongWindow }
