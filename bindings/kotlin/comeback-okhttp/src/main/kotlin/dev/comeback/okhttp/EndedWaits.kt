// Waits of a factory's calls that something has ended: they are gone on with together, away from the thread that ended them.
package dev.comeback.okhttp

import dev.comeback.Time
import dev.comeback.orNull
import java.util.concurrent.atomic.AtomicReference

/**
 * An edge may end thousands of waits, and whoever tells of it has others to tell: for that thread each costs one exchange of a reference. Who adds to
 * none has the rest scheduled, so at most one task is, and none is missing.
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
        for (ended in all.asReversed()) orNull { ended.goOn() }
    }
}
