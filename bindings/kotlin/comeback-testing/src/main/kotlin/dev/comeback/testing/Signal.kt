// Whether bytes and connects get through a fake link now.
package dev.comeback.testing

import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/** The state of a [FakeLink], and the link's lock. */
internal class Signal {
    enum class State {
        ALIVE,

        /** Packets vanish, and nobody has noticed. */
        SWALLOWED,

        /** The phone has noticed: it has no network. */
        NO_NETWORK,

        /** Nobody listens at the other end. */
        REFUSED,
    }

    val lock = ReentrantLock()
    private val ended = lock.newCondition()

    /** Changed under the [lock]. */
    @Volatile
    var state = State.REFUSED

    val isWithoutNetwork: Boolean get() = state == State.NO_NETWORK

    /**
     * Waits until bytes that were just sent get through: at once on a live link, else when their sender sends them again and the link is alive
     * at that time. False: they never do, because [isOver].
     */
    fun passes(isOver: () -> Boolean): Boolean =
        lock.withLock {
            val sentAt = System.nanoTime()
            var after = 0L
            var timeout = FIRST_TIMEOUT_NANOS
            while (!isOver()) {
                val remaining = after - (System.nanoTime() - sentAt)
                if (remaining > 0) {
                    ended.awaitNanos(remaining)
                } else if (state == State.ALIVE) {
                    return true
                } else {
                    after += timeout
                    timeout *= 2
                }
            }
            false
        }

    /** Wakes those who wait, to look whether their connection is over. */
    fun wakeAll() = lock.withLock { ended.signalAll() }

    private companion object {
        /** A sender's first timeout over a mobile network; it doubles each time. */
        val FIRST_TIMEOUT_NANOS = TimeUnit.MILLISECONDS.toNanos(300)
    }
}
