// Waits of a factory's calls that have been ended. They are continued apart from each other, not on the thread that ended them.
package dev.comeback.okhttp.internal

import dev.comeback.driver.Time
import dev.comeback.driver.orNull
import java.util.concurrent.atomic.AtomicReference

/**
 * An edge may end thousands of waits, and the thread that reports it has more to do: for that thread each wait costs one exchange of a reference. Adding to
 * an empty list schedules a task that takes the list over, so no wait is forgotten. It schedules each of the others before it continues the oldest: an app's
 * code that one call comes upon, a listener for instance, holds up no other.
 */
internal class EndedWaits(
    private val time: Time,
) {
    private class Ended(
        val goOn: () -> Unit,
        val before: Ended?,
    )

    private val newest = AtomicReference<Ended?>()

    fun add(goOn: () -> Unit) {
        while (true) {
            val before = newest.get()
            if (!newest.compareAndSet(before, Ended(goOn, before))) continue
            if (before == null) time.schedule(Long.MIN_VALUE, ::goOn)
            return
        }
    }

    private fun goOn() {
        val all = generateSequence(newest.getAndSet(null)) { it.before }.toList()
        for (ended in all.asReversed().drop(1)) {
            orNull { time.schedule(Long.MIN_VALUE, ended.goOn) } ?: orNull { ended.goOn() }
        }
        orNull { all.last().goOn() }
    }
}
