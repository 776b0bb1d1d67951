// The event scripts through the whole monitor: registration, Android's callbacks and classes, the real hub.
package dev.comeback.android

import android.os.Build
import org.junit.After
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.ParameterizedRobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config

@RunWith(ParameterizedRobolectricTestRunner::class)
@Config(shadows = [WatchedConnectivityManager::class])
internal class CallbackScriptsTest(
    private val name: String,
) {
    @Before
    fun reset() {
        WatchedConnectivityManager.reset()
    }

    @After
    fun noThreadIsLeft() {
        MonitorFixture.awaitNoThread()
    }

    @Test
    fun `the script gives the edges it should`() {
        val script = Script.all().single { it.name == name }
        if (!script.runsOn(Build.VERSION.SDK_INT)) return
        if (!script.hasDefaultNetwork) shadowOf(MonitorFixture.service).setActiveNetworkInfo(null)
        if (script.isRefused) {
            WatchedConnectivityManager.refusals["register"] =
                SecurityException("Package android does not belong to 10123")
        }
        AndroidConnectivity(MonitorFixture.context).use { connectivity ->
            MonitorFixture.settle()
            script.start.check("${script.name}, start", dev.comeback.NetworkSnapshot.UNKNOWN, connectivity.snapshot)
            script.steps.forEachIndexed { number, step ->
                val before = connectivity.snapshot
                if (step.callbacks.isNotEmpty()) MonitorFixture.call(step.callbacks) else MonitorFixture.settle()
                step.expected.check("${script.name}, step $number", before, connectivity.snapshot)
            }
        }
    }

    internal companion object {
        @JvmStatic
        @ParameterizedRobolectricTestRunner.Parameters(name = "{0}")
        fun names(): List<Array<Any>> = Script.all().map { arrayOf<Any>(it.name) }
    }
}
