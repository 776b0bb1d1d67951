// Time in which no wait ends by itself: only what ends it is under test.
package dev.comeback.okhttp

import dev.comeback.SystemTime
import dev.comeback.Time
import dev.comeback.Wakeup
import java.util.concurrent.Semaphore

/** The clock is the real one. [waiting] has a permit for each wait that began. */
internal class EndlessWaits : Time {
    val waiting = Semaphore(0)

    override fun nanos(): Long = SystemTime.nanos()

    override fun wallMillis(): Long? = SystemTime.wallMillis()

    override fun await(
        wakeup: Wakeup,
        until: Long,
    ): Boolean {
        waiting.release()
        return wakeup.await(Long.MAX_VALUE)
    }
}
