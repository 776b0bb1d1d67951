// What the shared tests need to know of the JVM.
package dev.comeback.android

import android.os.Looper
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import java.time.Duration

internal class PlatformRunner(
    test: Class<*>,
) : RobolectricTestRunner(test)

/** All that is to happen on [looper] has happened, what is delayed a little included. */
internal fun settle(looper: Looper) {
    shadowOf(looper).idleFor(Duration.ofMillis(200))
}
