// What the limit of an attempt costs that is not reached: the clock that all calls share, beside okio's timeouts and the JDK's scheduler.
package dev.comeback.bench

import dev.comeback.InternalComebackApi
import dev.comeback.driver.LimitTimer
import okio.AsyncTimeout
import org.openjdk.jmh.annotations.Benchmark
import org.openjdk.jmh.annotations.Scope
import org.openjdk.jmh.annotations.State
import java.util.concurrent.ScheduledThreadPoolExecutor
import java.util.concurrent.TimeUnit

@State(Scope.Benchmark)
open class Limits {
    private val scheduler = ScheduledThreadPoolExecutor(1) { Thread(it).apply { isDaemon = true } }.apply { removeOnCancelPolicy = true }

    /** The object alone, so that the others can be compared with it. */
    @Benchmark
    fun nothing(): Any = Timer()

    @OptIn(InternalComebackApi::class)
    @Benchmark
    fun comeback(): Boolean = Timer().apply { start(LENGTH) }.stop()

    @Benchmark
    fun okio(): Boolean =
        AsyncTimeout()
            .apply {
                timeout(LENGTH, TimeUnit.NANOSECONDS)
                enter()
            }.exit()

    @Benchmark
    fun scheduler(): Boolean = scheduler.schedule({}, LENGTH, TimeUnit.NANOSECONDS).cancel(false)

    @OptIn(InternalComebackApi::class)
    private class Timer : LimitTimer() {
        override fun reached() = Unit
    }

    private companion object {
        const val LENGTH = 20_000_000_000L
    }
}
