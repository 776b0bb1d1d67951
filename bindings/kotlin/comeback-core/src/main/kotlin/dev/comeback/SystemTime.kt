// The real clocks, and the real wait.
package dev.comeback

import java.lang.reflect.Method

/**
 * On Android `SystemClock.elapsedRealtimeNanos`, which goes on while the device sleeps; on a plain JVM `System.nanoTime`.
 */
@InternalComebackApi
public object SystemTime : Time {
    /** By reflection, because this module is compiled without Android. A stub that throws, as in local unit tests, is no clock. */
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
            // The timer below stands still while a device sleeps, the clock does not: so the clock is asked again after it.
            val left = nanosUntil(until, nanos())
            if (wakeup.await(left)) return true
            if (left <= 0) return false
        }
    }
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
