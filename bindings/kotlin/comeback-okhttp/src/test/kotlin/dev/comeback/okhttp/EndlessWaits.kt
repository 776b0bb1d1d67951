// Time in which no wait ends by itself: only what ends it is under test.
package dev.comeback.okhttp

import dev.comeback.Subscription
import dev.comeback.driver.SystemTime
import dev.comeback.driver.Time
import dev.comeback.driver.Wakeup
import java.util.concurrent.Semaphore
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** The clock is the real one. [waiting] has a permit for each wait that began. */
internal class EndlessWaits : Time {
    val waiting = Semaphore(0)

    override fun nanos(): Long = SystemTime.nanos()

    override fun wallMillis(): Long? = SystemTime.wallMillis()

    override fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean {
        waiting.release()
        return wakeup.await(Long.MAX_VALUE)
    }

    override fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription {
        if (until <= nanos()) return SystemTime.schedule(until, action)
        waiting.release()
        return Subscription {}
    }
}

/**
 * [tryOnce] answers how many milliseconds it took for a wait to be over once something had ended it. On a loaded machine one try may be unlucky;
 * that nothing polls is seen by the waits that began.
 */
internal fun EndlessWaits.assertPrompt(tryOnce: () -> Long) {
    val took = ArrayList<Long>()
    while (took.isEmpty() || took.last() > 50) {
        assertTrue(took.size < 5, "took $took ms")
        took += tryOnce()
        assertEquals(0, waiting.availablePermits(), "waits begun besides the one")
    }
}
