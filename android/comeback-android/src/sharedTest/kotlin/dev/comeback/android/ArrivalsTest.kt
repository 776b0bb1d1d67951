// The event scripts through the joining of callbacks and the real hub: on a JVM and on a device.
// Names without spaces: an Android older than API 30 takes no others.
package dev.comeback.android

import android.os.Build
import android.os.Handler
import android.os.HandlerThread
import dev.comeback.ManualConnectivity
import org.junit.Test
import org.junit.runner.RunWith

@RunWith(PlatformRunner::class)
internal class ArrivalsTest {
    @Test
    fun eachScriptGivesTheEdgesItShould() {
        for (script in Script.all()) {
            // The others begin with what only the monitor does, or never hear of a callback that is not made there.
            if (script.isRefused || !script.runsOn(Build.VERSION.SDK_INT) || !script.runsOn(FIRST_THAT_TELLS_ALL)) continue
            play(script)
        }
    }

    private fun play(script: Script) {
        val thread = HandlerThread("arrivals").apply { start() }
        val handler = Handler(thread.looper)
        val hub = ManualConnectivity()
        val arrivals = Arrivals(hub, handler, promisesCapabilities = true)
        try {
            if (!script.hasDefaultNetwork) hub.noneAtStart()
            script.steps.forEachIndexed { number, step ->
                val before = hub.snapshot
                // One message, as the system makes it.
                handler.post { for (callback in step.callbacks) tell(arrivals, callback) }
                settle(thread.looper)
                step.expected.check("${script.name}, step $number", before, hub.snapshot)
            }
        } finally {
            hub.close()
            thread.quit()
        }
    }

    private fun tell(
        arrivals: Arrivals,
        callback: Script.Callback,
    ) {
        when (callback.on) {
            "available" -> arrivals.available(callback.network)
            "capabilities" -> arrivals.capabilities(callback.network, callback.suspended, callback.validated)
            "blocked" -> arrivals.blocked(callback.network, callback.blocked)
            "lost" -> arrivals.lost(callback.network)
            else -> error("unknown callback: ${callback.on}")
        }
    }

    private companion object {
        const val FIRST_THAT_TELLS_ALL = Build.VERSION_CODES.Q
    }
}
