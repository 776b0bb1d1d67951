package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals

/** What the phone was told becomes stretches of time. */
class PhoneKnowledgeTest {
    private var now = 0L
    private val phone = PhoneKnowledge { now }

    @Test
    fun `a stretch lasts from the first word of a loss to the first of the return`() {
        for ((at, isOffline) in listOf(0L to false, 5000L to true, 5500L to true, 6500L to false, 7000L to false)) {
            now = at
            phone.told(isOffline)
        }
        assertEquals(listOf(Outage(5000, 6500)), phone.offline())
    }

    @Test
    fun `a loss whose return nobody told lasts until now`() {
        now = 5000
        phone.told(true)
        now = 9000
        assertEquals(listOf(Outage(5000, 9000)), phone.offline())
    }
}
