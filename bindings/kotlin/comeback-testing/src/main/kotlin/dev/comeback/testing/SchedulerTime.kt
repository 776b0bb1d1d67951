// Time for tests of coroutines: the clock is runTest's own.
package dev.comeback.testing

import dev.comeback.Comeback
import dev.comeback.ManualConnectivity
import dev.comeback.Subscription
import dev.comeback.driver.NANOS_PER_MILLI
import dev.comeback.driver.Time
import dev.comeback.driver.Wakeup
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.test.TestCoroutineScheduler

/**
 * The virtual time of a test's coroutines, in milliseconds. Coroutines wait by their dispatcher; a thread cannot wait in it.
 *
 * ```
 * @Test
 * fun loads() = runTest {
 *     val comeback = Comeback { connectivity = schedulerTime(testScheduler).network() }
 *     comeback.retry { repository.load() }
 * }
 * ```
 */
@OptIn(ExperimentalCoroutinesApi::class)
public class SchedulerTime(
    private val scheduler: TestCoroutineScheduler,
) : Time {
    /** The wall clock at instant 0, in milliseconds since 1970; null, the default: there is none. It goes on with [nanos]. */
    @Volatile
    public var wallMillisAtZero: Long? = null

    /** A network that lives in this time, and that calls to a server on this machine take notice of. */
    public fun network(): ManualConnectivity = ManualConnectivity(this, concernsLoopback = true)

    override fun nanos(): Long = scheduler.currentTime * NANOS_PER_MILLI

    override fun wallMillis(): Long? = wallMillisAtZero?.plus(scheduler.currentTime)

    /** @throws IllegalStateException always */
    override fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean = throw IllegalStateException("a thread cannot wait in runTest's time; use instantWaits() for clients that block")

    /** @throws IllegalStateException always */
    override fun schedule(
        until: Long,
        action: Runnable,
    ): Subscription = throw IllegalStateException("only coroutines wait in runTest's time; use instantWaits() for calls of the factory")
}

/** Makes the [Comeback] that is being built use the time of a test's coroutines, which is returned. */
public fun Comeback.Builder.schedulerTime(scheduler: TestCoroutineScheduler): SchedulerTime = SchedulerTime(scheduler).also { time = it }
