// One match: the same taps for every client, and for the limit that none can beat.
package dev.comeback.arena

import java.util.SplittableRandom

/** Where a tap falls. */
internal data class Moment(
    val at: Long,
    val isInLongWindow: Boolean,
)

/** What one client, or the limit, made of all taps. */
internal class Run(
    val name: String,
    val configuration: String,
    val stories: List<Story>,
)

/** What became of one tap. */
internal class Story(
    val moment: Moment,
    /** From the link's return, or from the tap if the link was alive. */
    val since: Long,
    val succeeded: Boolean,
    val endedAt: Long,
    val sends: Int,
    val deadSends: Int,
    /** Whether the limit serves this tap. */
    val isPossible: Boolean,
) {
    /** Null: endless. */
    val lag: Long? get() = (endedAt - since).takeIf { succeeded }
}

internal class Match(
    val seed: Long,
    val link: Link,
    val moments: List<Moment>,
    val limit: Run,
    val clients: List<Run>,
)

/** Every second tap falls in a dead window of ten seconds and more, if the trace has any; the others fall anywhere. In order of time. */
internal fun moments(
    trace: Trace,
    count: Int,
    seed: Long,
): List<Moment> {
    val random = SplittableRandom(seed)
    val long = trace.outages.filter { it.millis >= Trace.LONG_SECONDS * SECOND }
    val deadMillis = long.sumOf { it.millis }
    return List(count) { index ->
        if (index % 2 == 0 || long.isEmpty()) {
            Moment(random.nextLong(trace.millis), isInLongWindow = false)
        } else {
            var into = random.nextLong(deadMillis)
            val window = long.first { (into < it.millis).also { isHere -> if (!isHere) into -= it.millis } }
            Moment(window.from + into, isInLongWindow = true)
        }
    }.sortedBy { it.at }
}

internal fun match(
    link: Link,
    moments: List<Moment>,
    seed: Long,
    clients: List<Client> = CLIENTS,
): Match {
    val chances = moments.map { link.firstChance(it.at) }
    val isPossible = moments.zip(chances) { moment, chance -> chance <= moment.at + LAST_START }

    fun story(
        index: Int,
        succeeded: Boolean,
        endedAt: Long,
        sends: Int,
        deadSends: Int,
    ): Story {
        val moment = moments[index]
        val since = link.trace.outageAt(moment.at)?.until ?: moment.at
        return Story(moment, since, succeeded, endedAt, sends, deadSends, isPossible[index])
    }

    val limit =
        moments.indices.map { index ->
            val served = isPossible[index]
            story(index, served, if (served) chances[index] + link.model.exchange else moments[index].at, if (served) 1 else 0, 0)
        }
    val runs =
        clients.map { client ->
            Chance.seed(seed)
            val taps = moments.mapIndexed { number, moment -> Tap(number, moment.at) }
            SimulatedPhone(link, taps, seed).run(client)
            Run(client.name, client.configuration, taps.map { story(it.number, it.succeeded, it.endedAt, it.sends, it.deadSends) })
        }
    return Match(seed, link, moments, Run("limit", "some start within the policy's time whose exchange meets no dead second", limit), runs)
}

/** READ starts nothing later than this after the tap: 100 ms before its 20 s are over. */
internal val LAST_START = PATIENCE.inWholeMilliseconds - 100
