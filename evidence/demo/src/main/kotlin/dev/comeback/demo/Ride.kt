// When the link is alive.
package dev.comeback.demo

/** A ride, second by second: was the link alive? Everything else in the demo asks this for the truth about the link. */
internal class Ride(
    val name: String,
    private val alive: List<Boolean>,
) {
    val seconds: Int get() = alive.size
    val deadSeconds: List<Int> get() = alive.indices.filter { !alive[it] }
    val aliveSeconds: List<Int> get() = alive.indices.filter { alive[it] }

    /** The dead stretches in order, neighbouring dead seconds joined. */
    val outages: List<Outage> =
        buildList {
            var start = 0
            while (start < alive.size) {
                val end = (start until alive.size).firstOrNull { alive[it] != alive[start] } ?: alive.size
                if (!alive[start]) add(Outage(start * SECOND, end * SECOND))
                start = end
            }
        }

    /** The instant itself if the link was alive then, else the end of the outage. After the last second the link stays alive: the train has arrived. */
    fun aliveFrom(millis: Long): Long = outages.firstOrNull { millis in it.from until it.until }?.until ?: millis

    companion object {
        const val SECOND = 1000L
    }
}

/** A dead stretch of a ride, in milliseconds since its start: [from] included, [until] not. */
internal data class Outage(
    val from: Long,
    val until: Long,
)
