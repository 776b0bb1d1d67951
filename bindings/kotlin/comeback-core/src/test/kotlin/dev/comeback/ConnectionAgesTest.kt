// Ages of connections: nothing is told apart until something happened, and each death grows one generation.
package dev.comeback

import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.ConnectionAges
import java.util.concurrent.CountDownLatch
import kotlin.concurrent.thread
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNotEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

internal class ConnectionAgesTest {
    private val ages = ConnectionAges(firstPath = 3)

    private fun age(
        host: String = "one",
        path: Long = 3,
    ) = ages.of(path, "https", host, 443)

    private fun suspect(
        began: ConnectionAge?,
        host: String = "one",
    ) = ages.suspect(began, "https", host, 443)

    @Test
    fun `on the first path and before any suspicion connections have no age`() {
        assertTrue(ages.areAllFirst(3))
        assertNull(age())
    }

    @Test
    fun `another path is another age, for every origin`() {
        assertFalse(ages.areAllFirst(4))
        assertEquals(age("one", path = 4), age("two", path = 4))
        assertNotEquals(age(path = 4), age(path = 5))
    }

    @Test
    fun `an origin that is suspect gets another age, the others none`() {
        suspect(null)
        assertNotNull(age("one"))
        assertNull(age("two"))
        assertNull(ages.of(3, "https", "one", 8443))
        assertNull(ages.of(3, "http", "one", 443))
    }

    @Test
    fun `two origins never share a generation, which a redirect could mistake for its own`() {
        suspect(null, "one")
        suspect(null, "two")
        assertNotEquals(age("one"), age("two"))
    }

    @Test
    fun `all attempts that began in one generation grow it once`() {
        val began = List(1_000) { age() }
        began.forEach { suspect(it) }
        val second = age()
        suspect(second)
        assertEquals(1, second!!.generation)
        assertEquals(2, age()!!.generation)
    }

    @Test
    fun `threads that suspect one generation together grow it once`() {
        repeat(200) {
            val began = age()
            val start = CountDownLatch(1)
            val threads =
                List(4) {
                    thread {
                        start.await()
                        suspect(began)
                    }
                }
            start.countDown()
            threads.forEach { it.join() }
            assertEquals((began?.generation ?: 0) + 1, age()!!.generation)
        }
    }

    @Test
    fun `more origins than are kept apart begin a new generation together, and none goes back`() {
        val seen = HashMap<String, Long>()
        repeat(3 * ConnectionAges.MOST_ORIGINS) { number ->
            val host = "host$number"
            suspect(age(host), host)
            seen[host] = age(host)!!.generation
            assertTrue(seen.all { (known, before) -> age(known)!!.generation >= before })
        }
    }

    @Test
    fun `of two Comebacks neither takes the other's connections for its own`() {
        val others = ConnectionAges(firstPath = 3)
        assertNotEquals(age(path = 4), others.of(4, "https", "one", 443))
    }

    @Test
    fun `a pool is to be emptied once per path, and not on the first`() {
        val pool = Any()
        assertFalse(ages.isNewTo(pool, 3))
        assertTrue(ages.isNewTo(pool, 4))
        assertFalse(ages.isNewTo(pool, 4))
        assertTrue(ages.isNewTo(pool, 6))
        assertFalse(ages.isNewTo(pool, 5))
        assertTrue(ages.isNewTo(Any(), 6))
    }
}
