// Airplane mode: nobody waits for a network that somebody has switched off, and everybody for one that is switched on again.
package dev.comeback.android

import android.app.Application
import android.content.BroadcastReceiver
import android.content.Context
import android.content.ContextWrapper
import android.content.Intent
import android.content.IntentFilter
import android.os.Handler
import android.os.Looper
import android.provider.Settings
import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkState
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.SystemTime
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertSame
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowSystemClock
import java.time.Duration

@OptIn(InternalComebackApi::class)
@RunWith(RobolectricTestRunner::class)
@Config(shadows = [WatchedConnectivityManager::class])
internal class AirplaneTest {
    private val arrival =
        Script
            .all()
            .first { it.name.startsWith("a network that arrives is one event") }
            .steps
            .first()
            .callbacks
    private val loss =
        Script.all().flatMap { it.steps }.flatMap { it.callbacks }.first { it.on == "lost" && it.network == 1L }.let(
            ::listOf,
        )

    @Before
    fun reset() {
        WatchedConnectivityManager.reset()
        set(isOn = false)
    }

    @After
    fun noThreadIsLeft() {
        MonitorFixture.awaitNoThread()
    }

    private fun set(isOn: Boolean) {
        Settings.Global.putInt(MonitorFixture.context.contentResolver, Settings.Global.AIRPLANE_MODE_ON, if (isOn) 1 else 0)
    }

    /** As the system does it: the setting first. */
    private fun switch(isOn: Boolean) {
        set(isOn)
        MonitorFixture.context.sendBroadcast(Intent(Intent.ACTION_AIRPLANE_MODE_CHANGED).putExtra("state", isOn))
        shadowOf(Looper.getMainLooper()).idle()
        MonitorFixture.settle()
    }

    private fun monitored(
        context: Context = MonitorFixture.context,
        test: (AndroidConnectivity) -> Unit,
    ) {
        AndroidConnectivity(context).use {
            MonitorFixture.settle()
            test(it)
        }
    }

    /** What becomes of a GET under the default policy that finds no network. */
    private fun tap(network: AndroidConnectivity): NextStep {
        val comeback = Comeback { connectivity = network }
        val call = CallSession(comeback, RetryPolicy.DEFAULT, null, RequestFacts("GET"))
        call.noteAttempt()
        return call.failed(Outcome.failure(FailureKind.DNS, sentNothing = true))
    }

    private fun assertFailsAtOnce(step: NextStep) = assertEquals(StopReason.Offline, (step as? NextStep.Stop)?.reason)

    private fun assertWaits(step: NextStep) = assertTrue("$step", step is NextStep.Sleep)

    @Test
    fun `a call fails at once while airplane mode is on, whether the loss came before it or after`() {
        monitored {
            MonitorFixture.call(arrival)
            MonitorFixture.call(loss)
            assertWaits(tap(it))
            switch(isOn = true)
            assertFailsAtOnce(tap(it))
        }
        set(isOn = false)
        monitored {
            MonitorFixture.call(arrival)
            switch(isOn = true)
            assertEquals(NetworkState.ONLINE, it.snapshot.state)
            MonitorFixture.call(loss)
            assertFailsAtOnce(tap(it))
        }
    }

    @Test
    fun `a tap right after airplane mode is switched off waits for the network`() {
        monitored {
            MonitorFixture.call(arrival)
            MonitorFixture.call(loss)
            switch(isOn = true)
            ShadowSystemClock.advanceBy(Duration.ofHours(8))
            switch(isOn = false)
            assertWaits(tap(it))
            assertTrue(SystemTime.nanos() - it.snapshot.since in 0..Duration.ofSeconds(1).toNanos())
        }
    }

    @Test
    fun `a flight that began before the app did ends like any other`() {
        shadowOf(MonitorFixture.service).setActiveNetworkInfo(null)
        set(isOn = true)
        monitored {
            assertFailsAtOnce(tap(it))
            switch(isOn = false)
            assertWaits(tap(it))
        }
    }

    private fun registered() =
        shadowOf(MonitorFixture.context as Application).registeredReceivers.filter { it.broadcastReceiver is AirplaneReceiver }

    @Test
    fun `it is heard on the monitor's thread, by one receiver, which goes with the monitor`() {
        monitored { assertSame(MonitorFixture.threads().single().looper, registered().single().scheduler.looper) }
        MonitorFixture.awaitNoThread()
        assertEquals(0, registered().size)
    }

    @Test
    fun `a system that refuses to tell of it does no harm`() {
        val refusing =
            object : ContextWrapper(MonitorFixture.context) {
                override fun getApplicationContext(): Context = this

                override fun registerReceiver(
                    receiver: BroadcastReceiver?,
                    filter: IntentFilter,
                    broadcastPermission: String?,
                    scheduler: Handler?,
                ): Intent? = throw SecurityException("One of RECEIVER_EXPORTED or RECEIVER_NOT_EXPORTED should be specified")
            }
        monitored(refusing) {
            MonitorFixture.call(arrival)
            MonitorFixture.call(loss)
            switch(isOn = true)
            assertWaits(tap(it))
        }
    }
}
