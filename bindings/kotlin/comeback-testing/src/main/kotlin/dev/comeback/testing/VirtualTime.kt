// Time for tests: nobody waits, the clock jumps.
package dev.comeback.testing

import dev.comeback.Comeback
import dev.comeback.ManualConnectivity
import dev.comeback.Subscription
import dev.comeback.driver.NANOS_PER_MILLI
import dev.comeback.driver.Time
import dev.comeback.driver.Wakeup
import java.util.PriorityQueue
import kotlin.concurrent.thread

/**
 * A clock that stands still until someone waits. A wait then ends at once, and the clock shows the time at which it would have ended. [at] says what
 * happens in between.
 *
 * ```
 * val comeback = Comeback {
 *     connectivity = instantWaits().network()
 * }
 * ```
 *
 * May be used from any thread. If several threads wait, each of them moves the one clock on.
 */
public class VirtualTime : Time {
    private class Action(
        val nanos: Long,
        val order: Int,
        val run: Runnable,
    )

    private val lock = Any()
    private var now = 0L
    private var wall: Long? = null
    private var order = 0
    private val actions = queue()

    /** Actions of calls that wait without a thread. */
    private val scheduled = queue()
    private var isMoving = false

    /** The wall clock at instant 0, in milliseconds since 1970; null, the default: there is none. It goes on with [nanos]. */
    public var wallMillisAtZero: Long?
        get() = synchronized(lock) { wall }
        set(value) = synchronized(lock) { wall = value }

    /** A network that lives in this time, and that calls to a server on this machine take notice of. */
    public fun network(): ManualConnectivity = ManualConnectivity(this, concernsLoopback = true)

    /** Starts at 0. */
    override fun nanos(): Long = synchronized(lock) { now }

    override fun wallMillis(): Long? = synchronized(lock) { wall?.plus(now / NANOS_PER_MILLI) }

    /** Runs [action] when the clock passes [nanos], on the thread that moves it. If that instant is over, it runs at the next move. */
    public fun at(
        nanos: Long,
        action: Runnable,
    ) {
        synchronized(lock) { actions += Action(nanos, order++, action) }
    }

    /** Moves the clock on by [nanos], and runs the actions in between. */
    public fun advance(nanos: Long) {
        require(nanos >= 0) { "time does not run backwards: $nanos" }
        val until = nanos() + nanos
        while (happenNext(until)) {
            // And the next.
        }
        moveTo(until)
    }

    override fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean {
        do {
            // Zero: it does not wait, but throws if the thread was interrupted.
            if (wakeup.await(0)) return true
        } while (happenNext(until))
        moveTo(until)
        return false
    }

    /** A thread of its own moves the clock on from one scheduled action to the next, as long as there are any. */
    override fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription =
        synchronized(lock) {
            val added = Action(until, order++, action)
            scheduled += added
            if (!isMoving) {
                isMoving = true
                thread(isDaemon = true, name = "virtual-time", block = ::runScheduled)
            }
            Subscription { synchronized(lock) { scheduled -= added } }
        }

    private fun runScheduled() {
        while (true) {
            val next =
                synchronized(lock) {
                    isMoving = scheduled.isNotEmpty()
                    scheduled.peek()
                } ?: return
            // An earlier action may schedule something earlier, or cancel this one.
            if (happenNext(next.nanos)) continue
            val isDue =
                synchronized(lock) {
                    scheduled.remove(next).also { if (it) moveTo(next.nanos) }
                }
            if (isDue) runCatching { next.run.run() }
        }
    }

    private fun happenNext(until: Long): Boolean {
        val next = synchronized(lock) { actions.peek()?.takeIf { it.nanos <= until }?.also { actions.poll() } } ?: return false
        moveTo(next.nanos)
        next.run.run()
        return true
    }

    private fun queue() = PriorityQueue(compareBy<Action> { it.nanos }.thenBy { it.order })

    private fun moveTo(nanos: Long) = synchronized(lock) { now = maxOf(now, nanos) }
}

/** Makes the [Comeback] that is being built use a [VirtualTime], which is returned. Its calls retry as usual, but no wait takes time. */
public fun Comeback.Builder.instantWaits(): VirtualTime = VirtualTime().also { time = it }
