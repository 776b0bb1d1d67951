// How a waiting thread is woken: by an edge, a cancel, a close.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/**
 * One call's alarm. [wake] may come from any thread and before anyone waits: it is kept until a wait uses it up. Several wakes are one.
 * Nothing polls.
 *
 * @suppress
 */
@InternalComebackApi
public class Wakeup {
    private val lock = ReentrantLock()
    private val changed = lock.newCondition()
    private var woken = false

    /** Ends the wait that is going on, or else the next one. */
    public fun wake() {
        lock.withLock {
            woken = true
            changed.signalAll()
        }
    }

    /**
     * Waits at most [nanos] of the JVM's own timer, not at all if that is not positive. True if it was woken.
     *
     * @throws InterruptedException if the thread is interrupted, even before this call
     */
    @Throws(InterruptedException::class)
    public fun await(nanos: Long): Boolean {
        lock.lockInterruptibly()
        try {
            var left = nanos
            while (!woken && left > 0) left = changed.awaitNanos(left)
            return woken.also { woken = false }
        } finally {
            lock.unlock()
        }
    }
}
