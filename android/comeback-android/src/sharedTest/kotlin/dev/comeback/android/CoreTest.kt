// The core inside Android's framework: on a JVM and on a device.
// Names without spaces: an Android older than API 30 takes no others.
package dev.comeback.android

import android.os.Looper
import android.os.SystemClock
import dev.comeback.Comeback
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.NetworkState
import dev.comeback.RetryPolicy
import dev.comeback.driver.MainThread
import dev.comeback.driver.SystemTime
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import kotlin.concurrent.thread
import kotlin.time.Duration.Companion.seconds

@OptIn(InternalComebackApi::class)
@RunWith(PlatformRunner::class)
internal class CoreTest {
    @Test
    fun theNativeLibraryMakesADecision() {
        Comeback().use { it.selfCheck() }
    }

    @Test
    fun aPolicyIsCompiledByTheNativeLibrary() {
        assertTrue(RetryPolicy(base = RetryPolicy.READ) { maxElapsed = 45.seconds }.toString().contains("45"))
    }

    @Test
    fun eachScriptOfTheHubLeavesTheSnapshotsItShould() {
        for (case in Script.cases("hub.json")) {
            ManualConnectivity(NoTime).use { hub ->
                for (step in case.getValue("steps").jsonArray) tell(hub, step.jsonObject)
                val last =
                    case
                        .getValue("steps")
                        .jsonArray
                        .last()
                        .jsonObject
                val expected =
                    last
                        .getValue("expect")
                        .jsonObject
                        .getValue("network")
                        .jsonObject
                val found = hub.snapshot
                assertEquals(case.text("name"), NetworkState.valueOf(expected.text("state").uppercase()), found.state)
                assertEquals(case.text("name"), expected.number("epoch"), found.epoch)
                assertEquals(case.text("name"), expected.number("path"), found.path)
            }
        }
    }

    private fun tell(
        hub: ManualConnectivity,
        step: JsonObject,
    ) {
        when (val event = step.text("event")) {
            "none_at_start" -> hub.noneAtStart()
            "available" -> hub.available(step.number("handle"), step.flag("blocked"), step.flag("suspended"), step.flag("validated"))
            "capabilities" -> hub.capabilities(step.number("handle"), step.flag("suspended"), step.flag("validated"))
            "blocked" -> hub.blocked(step.number("handle"), step.flag("blocked"))
            "lost" -> hub.lost(step.number("handle"))
            "failed" -> hub.failed()
            "restored" -> hub.restored()
            "deliberate" -> hub.deliberate(step.flag("on"))
            else -> error("unknown event: $event")
        }
    }

    @Test
    fun theClockIsTheOneThatGoesOnWhileTheDeviceSleeps() {
        val before = SystemClock.elapsedRealtimeNanos()
        val now = SystemTime.nanos()
        assertTrue(now in before..SystemClock.elapsedRealtimeNanos())
    }

    @Test
    fun theMainThreadIsKnown() {
        assertEquals(Looper.myLooper() === Looper.getMainLooper(), MainThread.isCurrent)
        var isCurrent = true
        thread { isCurrent = MainThread.isCurrent }.join()
        assertFalse(isCurrent)
    }

    private fun JsonObject.number(name: String) = getValue(name).jsonPrimitive.long

    /** Only states and counts are compared here. */
    private object NoTime : dev.comeback.driver.Time {
        override fun nanos(): Long = 0

        override fun wallMillis(): Long? = null

        override fun await(
            wakeup: dev.comeback.driver.Wakeup,
            until: Long,
        ): Boolean = false

        override fun schedule(
            until: Long,
            action: Runnable,
        ): dev.comeback.Subscription = dev.comeback.Subscription {}
    }
}
