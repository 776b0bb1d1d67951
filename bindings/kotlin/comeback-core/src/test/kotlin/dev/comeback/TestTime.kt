// Time as a test sets it.
package dev.comeback

import dev.comeback.driver.Time
import dev.comeback.driver.Wakeup

/** Stands still; a wait jumps to its end unless it was woken before. [meanwhile] happens at the beginning of each wait. */
internal class TestTime(
    @Volatile var now: Long = 0,
    var wall: Long? = null,
    var meanwhile: () -> Unit = {},
) : Time {
    override fun nanos(): Long = now

    override fun wallMillis(): Long? = wall

    override fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean {
        meanwhile()
        if (wakeup.await(0)) return true
        now = maxOf(now, until)
        return false
    }

    override fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription = error("no session schedules")
}
