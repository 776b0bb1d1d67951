// What the shared tests need to know of a device.
package dev.comeback.android

import android.os.Handler
import android.os.Looper
import org.junit.runners.BlockJUnit4ClassRunner
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit.SECONDS

internal class PlatformRunner(
    test: Class<*>,
) : BlockJUnit4ClassRunner(test)

/** All that is to happen on [looper] has happened, what is delayed a little included. */
internal fun settle(looper: Looper) {
    val passed = CountDownLatch(1)
    Handler(looper).postDelayed({ passed.countDown() }, 200)
    check(passed.await(10, SECONDS)) { "the looper hangs" }
}
