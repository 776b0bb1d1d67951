// One coarse clock for the limits of all calls. Hardly any limit is ever reached, so beginning and ending one must cost next to nothing.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import dev.comeback.internal.contained
import dev.comeback.internal.daemonThreads
import java.util.concurrent.Executor
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater
import java.util.concurrent.atomic.AtomicReference
import java.util.concurrent.locks.LockSupport

/**
 * One limit of one attempt or call, and its own entry in the clock's list: [start] makes no other object. To be started once.
 *
 * @suppress
 */
@InternalComebackApi
public abstract class LimitTimer {
    /** In the list of new timers, then in the clock's own. Written before the timer is visible to the clock's thread; from then on by that thread only. */
    internal var next: LimitTimer? = null

    /** How long it lasts; once the clock's thread has seen it, the instant at which it is over. */
    internal var nanos = 0L

    @Volatile
    private var state = RUNNING

    internal val isRunning: Boolean get() = state == RUNNING

    /** The limit was reached before [stop]. Called once, on a thread that few other limits share; it may cancel a call, whose listeners are an app's code. */
    protected abstract fun reached()

    /** Begins the limit: [reached] follows after [nanos], never earlier and at most some 50 ms later. Wakes no thread unless the [clock] has been at rest. */
    @JvmOverloads
    public fun start(
        nanos: Long,
        clock: LimitClock = LimitClock.system,
    ) {
        this.nanos = nanos
        clock.add(this)
    }

    /** Ends the limit. True if it was reached before; then [reached] is called, or has been. Of this and the clock exactly one is first. */
    public fun stop(): Boolean {
        if (!STATE.compareAndSet(this, RUNNING, STOPPED)) return state == REACHED
        LimitClock.system.forget(this)
        return false
    }

    internal fun reach(threads: Executor) {
        if (!STATE.compareAndSet(this, RUNNING, REACHED)) return
        try {
            threads.execute { contained { reached() } }
        } catch (_: Throwable) {
            // No thread is to be had any more. Late is better than never.
            contained { reached() }
        }
    }

    private companion object {
        const val RUNNING = 0
        const val STOPPED = 1
        const val REACHED = 2

        val STATE: AtomicIntegerFieldUpdater<LimitTimer> = AtomicIntegerFieldUpdater.newUpdater(LimitTimer::class.java, "state")
    }
}

/**
 * A thread that looks at all running timers every 20 ms as long as new ones come.
 *
 * A new timer is pushed on a stack, and neither the time is asked nor a thread woken. The clock's thread takes the stack over at its next look and counts
 * the timer's length from there: so a thread that was held up makes limits later, never earlier. A timer that was stopped leaves the list at the next look.
 *
 * When no new timer has come for 2 s, the thread looks at the next limit's end, at least once a second; with no timer left it ends. Then the next
 * timer that is started wakes it, which costs some microseconds.
 *
 * @param nanos the time, as [Time.nanos]
 * @param pause waits so many nanoseconds, or shorter
 * @param thread runs the clock
 * @param threads run [LimitTimer.reached]
 * @suppress
 */
@InternalComebackApi
public class LimitClock internal constructor(
    private val nanos: () -> Long,
    private val pause: (nanos: Long) -> Unit,
    private val thread: Executor,
    private val threads: Executor,
) {
    private val added = AtomicReference<LimitTimer?>()

    /** Belongs to the clock's thread. */
    private var running: LimitTimer? = null

    /** TICKING: the thread sees a new timer by itself. RESTING: it has to be woken for it. ENDED: there is none. */
    private val state = AtomicInteger(ENDED)

    @Volatile
    private var resting: Thread? = null

    internal fun add(timer: LimitTimer) {
        do {
            val before = added.get()
            timer.next = before
        } while (!added.compareAndSet(before, timer))
        if (state.get() != TICKING) wake()
    }

    /**
     * If the stopped [timer] is the newest, it goes at once, and with it what it keeps in memory; else the clock's thread drops it. What is below it
     * stays as it is for as long as it is on the stack, because each timer is pushed once.
     */
    internal fun forget(timer: LimitTimer) {
        if (added.get() !== timer) return
        added.compareAndSet(timer, timer.next)
    }

    private fun wake() {
        if (state.compareAndSet(RESTING, TICKING)) {
            LockSupport.unpark(resting)
        } else if (state.compareAndSet(ENDED, TICKING)) {
            try {
                thread.execute(::run)
            } catch (_: Throwable) {
                // No thread is to be had. The request that began the limit goes all the same; the next one tries again.
                state.set(ENDED)
            }
        }
    }

    private fun run() {
        resting = Thread.currentThread()
        var looksWithoutNews = 0
        while (true) {
            // Somebody else's interrupt would keep it from pausing.
            Thread.interrupted()
            val now = nanos()
            if (takeOver(now)) looksWithoutNews = 0 else looksWithoutNews++
            val next = look(now)
            when {
                looksWithoutNews < LOOKS_UNTIL_REST -> {
                    pause(TICK_NANOS)
                }

                running == null -> {
                    state.set(ENDED)
                    // A timer that came in between either started the clock again, or is seen here.
                    if (added.get() == null || !state.compareAndSet(ENDED, TICKING)) return
                }

                else -> {
                    state.set(RESTING)
                    if (added.get() == null) pause(nanosUntil(next, now).coerceAtMost(LONGEST_REST_NANOS))
                    state.set(TICKING)
                }
            }
        }
    }

    /** Counts the new timers from [now] on. Whether there were any. */
    private fun takeOver(now: Long): Boolean {
        if (added.get() == null) return false
        var timer = added.getAndSet(null)
        while (timer != null) {
            val earlier = timer.next
            timer.nanos = (now + timer.nanos.coerceAtLeast(0)).let { if (it < now) Long.MAX_VALUE else it }
            timer.next = running
            running = timer
            timer = earlier
        }
        return true
    }

    /** Ends what is over and forgets what was stopped. When the next is over. */
    private fun look(now: Long): Long {
        var soonest = Long.MAX_VALUE
        var last: LimitTimer? = null
        var timer = running
        while (timer != null) {
            val following = timer.next
            val isOver = timer.nanos <= now
            if (isOver) timer.reach(threads)
            if (isOver || !timer.isRunning) {
                // Nothing that has ended keeps anything else in memory.
                timer.next = null
                if (last == null) running = following else last.next = following
            } else {
                soonest = minOf(soonest, timer.nanos)
                last = timer
            }
            timer = following
        }
        return soonest
    }

    public companion object {
        private const val TICKING = 0
        private const val RESTING = 1
        private const val ENDED = 2

        internal const val TICK_NANOS = 20_000_000L
        internal const val LOOKS_UNTIL_REST = 100
        internal const val LONGEST_REST_NANOS = 1_000_000_000L
        private const val MOST_AT_ONCE = 8

        /** The name that the threads of [LimitTimer.reached] begin with. */
        private const val REACHED_ON = "comeback-limit-reached"

        /** Of all calls of the process, by [SystemTime]. */
        @JvmField
        public val system: LimitClock =
            LimitClock(
                SystemTime::nanos,
                LockSupport::parkNanos,
                daemonThreads("comeback-limits", 1),
                daemonThreads(REACHED_ON, MOST_AT_ONCE),
            )

        /** Whether this thread runs a [LimitTimer.reached] of [system]. */
        @JvmStatic
        public val isEndingOnThisThread: Boolean
            get() = Thread.currentThread().name == REACHED_ON
    }
}
