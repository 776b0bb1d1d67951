// The real clocks, and the real waits.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import dev.comeback.Subscription
import dev.comeback.internal.contained
import dev.comeback.internal.daemonThread
import dev.comeback.internal.daemonThreads
import java.lang.reflect.Method
import java.util.concurrent.Future
import java.util.concurrent.ScheduledThreadPoolExecutor
import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.TimeUnit.SECONDS

/**
 * On Android `SystemClock.elapsedRealtimeNanos`, which goes on while the device sleeps; on a plain JVM `System.nanoTime`.
 *
 * @suppress
 */
@InternalComebackApi
public object SystemTime : Time {
    /** By reflection, because this module is compiled without Android. A stub that throws, as in local unit tests, is not used. */
    private val elapsedRealtimeNanos: Method? =
        try {
            Class.forName("android.os.SystemClock").getMethod("elapsedRealtimeNanos").takeIf { it.invoke(null) is Long }
        } catch (_: ReflectiveOperationException) {
            null
        } catch (_: LinkageError) {
            null
        }

    override fun nanos(): Long = if (elapsedRealtimeNanos == null) System.nanoTime() else elapsedRealtimeNanos.invoke(null) as Long

    override fun wallMillis(): Long = System.currentTimeMillis()

    override fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean {
        while (true) {
            // The timer below stands still while a device sleeps, but the clock goes on. So the clock is asked again after it.
            val left = nanosUntil(until, nanos())
            if (wakeup.await(left)) return true
            if (left <= 0) return false
        }
    }

    /** One thread that sees that the time has come. It ends while nothing is scheduled. */
    private val timer by lazy {
        ScheduledThreadPoolExecutor(1) { daemonThread(it, "comeback-timer") }.apply {
            removeOnCancelPolicy = true
            setKeepAliveTime(KEEP_ALIVE_SECONDS, SECONDS)
            allowCoreThreadTimeOut(true)
        }
    }

    /**
     * Actions run here: each may come upon an app's code that blocks. So many can block before one that has nothing to do with it waits. It takes a thread
     * per action to do better, and an edge may end thousands of waits.
     */
    private val actions by lazy { daemonThreads("comeback-calls", MOST_AT_ONCE) }

    override fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription = Scheduled(until, action).apply { start() }

    private class Scheduled(
        private val until: Long,
        private val action: Runnable,
    ) : Runnable,
        Subscription {
        @Volatile
        private var isClosed = false

        @Volatile
        private var future: Future<*>? = null

        fun start() {
            future = timer.schedule(this, nanosUntil(until, nanos()), NANOSECONDS)
            // Closed while it was started anew.
            if (isClosed) future?.cancel(false)
        }

        override fun run() {
            when {
                isClosed -> Unit

                // As above: the timer stands still while a device sleeps, and its clock may be another than ours.
                nanos() < until -> start()

                else -> handOver()
            }
        }

        private fun handOver() {
            try {
                actions.execute { if (!isClosed) contained { action.run() } }
            } catch (_: Throwable) {
                // No thread is to be had any more. Late is better than never.
                contained { action.run() }
            }
        }

        override fun close() {
            isClosed = true
            future?.cancel(false)
        }
    }

    private const val KEEP_ALIVE_SECONDS = 10L
    private const val MOST_AT_ONCE = 16
}

/** How long it is from [now] to [until]: 0 if that is over, saturating where the difference does not fit. */
internal fun nanosUntil(
    until: Long,
    now: Long,
): Long {
    if (until <= now) return 0
    val left = until - now
    return if (left < 0) Long.MAX_VALUE else left
}
