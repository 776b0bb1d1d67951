// 10,000 keyless POSTs through each driver: random faults, random things further in, and callers that give up at random.
package dev.comeback.matrix

import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.util.concurrent.ConcurrentHashMap
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.test.assertTrue

class StormTest {
    @ParameterizedTest
    @EnumSource(Driver::class)
    internal fun `no keyless POST arrives twice, and none that arrived is said not to have`(driver: Driver) {
        val seed = System.getProperty("comeback.matrix.seed")?.toLong() ?: 1L
        val random = Random(seed)
        val possible = allCells().filter { it.driver == driver && it.send == Send.POST && it.made != Made.UNNOTED }
        val cells = List((ALL * SHARE).toInt()) { possible.random(random) }
        // Before the first byte, in the middle of an attempt, between two, after the answer: whatever it hits.
        val givesUp = cells.map { if (random.nextInt(GIVE_UP_ONE_IN) == 0) random.nextLong(1, LONGEST_MILLIS) else null }
        val arrived = ConcurrentHashMap.newKeySet<String>()

        val broken =
            playAll(cells) { cell, label ->
                play(cell, label, givesUp[label.substringAfter('/').toInt()]).also { if (it.hasArrived) arrived += label }
            }.filter { it.rule == Rule.TWICE || it.rule == Rule.ARRIVED }

        println(
            "$driver: ${cells.size} keyless POSTs, ${arrived.size} arrived, ${givesUp.count { it != null }} callers gave up, seed $seed",
        )
        assertTrue(arrived.size > cells.size / 2, "only ${arrived.size} arrived")
        assertEquals(emptyList(), broken.map { "${it.cell}: ${it.rule}: ${it.detail}; ${it.played}" }, "seed $seed")
    }

    private companion object {
        const val ALL = 10_000
        const val GIVE_UP_ONE_IN = 3
        const val LONGEST_MILLIS = 40L
    }
}
