// Which attempt's code runs on a thread.
package dev.comeback

import dev.comeback.driver.AttemptSource
import dev.comeback.driver.OnThread
import dev.comeback.driver.OuterAttempt
import org.junit.jupiter.api.Test
import java.util.concurrent.CompletableFuture.supplyAsync
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.test.assertSame

class OnThreadTest {
    @Test
    fun `what was on the thread before is there again, whatever came in between`() {
        val onThread = OnThread<String>()
        onThread.during("outer") {
            assertFailsWith<IllegalStateException> { onThread.during("inner") { error(onThread.value.toString()) } }
            onThread.during(null) { assertNull(onThread.value) }
            assertEquals("outer", onThread.value)
            assertNull(supplyAsync { onThread.value }.get(), "on another thread")
        }
        assertNull(onThread.value)
    }

    @Test
    fun `a mark that nobody takes away is asked only until it answers that its attempt is over`() {
        val attempt = OuterAttempt()
        var isOver = false
        var asked = 0
        val mark =
            object : AttemptSource {
                override fun attempt(): OuterAttempt? {
                    asked++
                    return attempt.takeUnless { isOver }
                }
            }
        OuterAttempt.inside(null) {
            OuterAttempt.stays(mark)
            assertSame(attempt, OuterAttempt.onThisThread)
            isOver = true
            assertNull(OuterAttempt.onThisThread)
            val before = asked
            assertNull(OuterAttempt.onThisThread)
            assertEquals(before, asked)
        }
    }
}
