// What the tests use: a Comeback in the time of runTest, and everything its listener heard.
package dev.comeback.coroutines

import dev.comeback.Comeback
import dev.comeback.Connectivity
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.Subscription
import dev.comeback.testing.SchedulerTime
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.currentTime
import java.io.IOException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger

internal class RunTestFixture(
    private val test: TestScope,
    listen: (RetryEvent) -> Unit = {},
) {
    val clock = SchedulerTime(test.testScheduler)
    val connectivity = ManualConnectivity(clock, concernsLoopback = true)
    val watched = CountedConnectivity(connectivity)
    val events = CopyOnWriteArrayList<RetryEvent>()
    val comeback =
        Comeback {
            time = clock
            connectivity = watched
            listener =
                RetryListener {
                    events += it
                    listen(it)
                }
        }

    /** When attempts began, in virtual milliseconds. */
    val began = ArrayList<Long>()

    val finished: List<RetryEvent.Finished> get() = events.filterIsInstance<RetryEvent.Finished>()

    @OptIn(ExperimentalCoroutinesApi::class)
    fun begin() {
        began += test.currentTime
    }

    companion object {
        /** Waits 1, 2, 4 s. */
        val STEADY = RetryPolicy { jitter = Jitter.NONE }
    }
}

/** Counts those who listen. */
internal class CountedConnectivity(
    private val counted: Connectivity,
) : Connectivity by counted {
    val listening = AtomicInteger()

    override fun subscribe(onChange: () -> Unit): Subscription {
        val subscription = counted.subscribe(onChange)
        listening.incrementAndGet()
        return Subscription {
            subscription.close()
            listening.decrementAndGet()
        }
    }
}

internal fun lost(): IOException = java.net.SocketTimeoutException()
