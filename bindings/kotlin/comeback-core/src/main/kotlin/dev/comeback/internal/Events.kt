// What has happened to one call, and who tells it.
package dev.comeback.internal

import dev.comeback.Comeback
import dev.comeback.RetryEvent

/**
 * The listener hears the events of a call in order, by one thread at a time. A thread that is telling also tells what others have added meanwhile, so no
 * cancel waits for a listener. No lock is held while the listener runs.
 *
 * @param lock the call's
 */
internal class Events(
    private val comeback: Comeback,
    private val lock: Any,
) {
    private val all = ArrayList<RetryEvent>(4)

    /** How many the listener has heard, or is just hearing. */
    private var told = 0
    private var isTelling = false

    fun add(event: RetryEvent) {
        synchronized(lock) { all += event }
    }

    fun toList(): List<RetryEvent> = synchronized(lock) { all.toList() }

    fun tell() {
        synchronized(lock) {
            if (isTelling || told == all.size) return
            isTelling = true
        }
        comeback.onListenersThread(::tellUntold)
    }

    private fun tellUntold() {
        try {
            while (true) comeback.tell(nextUntold() ?: return)
        } catch (thrown: Throwable) {
            synchronized(lock) { isTelling = false }
            throw thrown
        }
    }

    private fun nextUntold(): RetryEvent? =
        synchronized(lock) {
            val next = all.getOrNull(told)
            if (next == null) isTelling = false else told++
            next
        }
}
