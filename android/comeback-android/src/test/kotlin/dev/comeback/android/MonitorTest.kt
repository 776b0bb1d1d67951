// The monitor's manners: one registration, its own thread, and nothing that goes wrong with the system reaches the app.
package dev.comeback.android

import android.app.Application
import android.content.Context
import android.content.ContextWrapper
import android.os.PowerManager
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import dev.comeback.NetworkState
import dev.comeback.driver.SystemTime
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertSame
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowSystemClock
import java.time.Duration
import java.util.concurrent.atomic.AtomicInteger

@OptIn(InternalComebackApi::class)
@RunWith(RobolectricTestRunner::class)
@Config(shadows = [WatchedConnectivityManager::class])
internal class MonitorTest {
    @Before
    fun reset() {
        WatchedConnectivityManager.reset()
    }

    @After
    fun noThreadIsLeft() {
        MonitorFixture.awaitNoThread()
        assertEquals(emptySet<Any>(), MonitorFixture.callbacks())
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

    private fun asked(what: String) = WatchedConnectivityManager.asked.count { it.first == what }

    private val arrival =
        Script
            .all()
            .first { it.name.startsWith("a network that arrives is one event") }
            .steps
            .first()

    @Test
    fun `a hundred monitors leave one registration, and the last that is closed leaves none`() {
        val all = List(100) { AndroidConnectivity(MonitorFixture.context) }
        MonitorFixture.settle()
        assertEquals(1, MonitorFixture.callbacks().size)
        assertEquals(1, MonitorFixture.threads().size)
        all.drop(1).forEach { it.close() }
        MonitorFixture.settle()
        assertEquals(1, MonitorFixture.callbacks().size)
        all.first().close()
        MonitorFixture.awaitNoThread()
        assertEquals(0, MonitorFixture.callbacks().size)
        assertEquals(1, asked("register"))
        assertEquals(1, asked("unregister"))
    }

    @Test
    fun `monitors made and closed one after the other leave nothing`() {
        repeat(100) { AndroidConnectivity(MonitorFixture.context).close() }
        MonitorFixture.awaitNoThread()
        assertEquals(asked("register"), asked("unregister"))
    }

    @Test
    fun `one closed twice gives up one view`() {
        monitored { other ->
            AndroidConnectivity(MonitorFixture.context).apply {
                close()
                close()
            }
            MonitorFixture.settle()
            assertEquals(1, MonitorFixture.callbacks().size)
            MonitorFixture.call(arrival.callbacks)
            assertEquals(NetworkState.ONLINE, other.snapshot.state)
        }
    }

    @Test
    fun `two monitors see the same`() {
        monitored { one ->
            monitored { other ->
                MonitorFixture.call(arrival.callbacks)
                assertEquals(NetworkState.ONLINE, one.snapshot.state)
                assertSame(one.snapshot, other.snapshot)
            }
        }
    }

    @Test
    fun `the system is asked on the monitor's thread only, once, and never in a callback`() {
        monitored {
            MonitorFixture.call(arrival.callbacks)
            it.snapshot
        }
        MonitorFixture.awaitNoThread()
        assertEquals(listOf("register", "ask", "unregister"), WatchedConnectivityManager.asked.map { it.first })
        assertEquals(setOf("comeback-network"), WatchedConnectivityManager.asked.map { it.second }.toSet())
    }

    @Test
    fun `its thread, which wakes calls, has the default priority`() {
        monitored {
            val thread = MonitorFixture.threads().single()
            assertEquals(android.os.Process.THREAD_PRIORITY_DEFAULT, android.os.Process.getThreadPriority(thread.threadId))
        }
    }

    @Test
    fun `it watches by the application's context, not by the one it was given`() {
        val activity = Robolectric.buildActivity(android.app.Activity::class.java).create().get()
        monitored(activity) { assertEquals(1, receivers()) }
    }

    private fun receivers() =
        shadowOf(MonitorFixture.context as Application).registeredReceivers.count { it.broadcastReceiver is IdleReceiver }

    @Test
    fun `without the permission, or on an Android 11 that refuses at random, nothing is known and nothing fails`() {
        for (refused in listOf("register", "ask")) {
            WatchedConnectivityManager.reset()
            WatchedConnectivityManager.refusals[refused] = SecurityException("Package android does not belong to 10123")
            monitored { assertEquals(NetworkSnapshot.UNKNOWN, it.snapshot) }
            MonitorFixture.awaitNoThread()
        }
    }

    @Test
    fun `with a hundred callbacks of others nothing is known and nothing fails`() {
        WatchedConnectivityManager.refusals["register"] = object : RuntimeException("TooManyRequests") {}
        monitored { assertEquals(NetworkSnapshot.UNKNOWN, it.snapshot) }
    }

    @Test
    fun `without the service nothing is known and nothing fails`() {
        val bare =
            object : ContextWrapper(MonitorFixture.context) {
                override fun getApplicationContext(): Context = this

                override fun getSystemService(name: String): Any? = null
            }
        monitored(bare) {
            assertEquals(NetworkSnapshot.UNKNOWN, it.snapshot)
            it.restored()
        }
    }

    @Test
    fun `a context without an application, as before its start, will do`() {
        val early =
            object : ContextWrapper(MonitorFixture.context) {
                override fun getApplicationContext(): Context? = null
            }
        monitored(early) {
            MonitorFixture.call(arrival.callbacks)
            assertEquals(NetworkState.ONLINE, it.snapshot.state)
        }
    }

    @Test
    fun `a system that denies having registered the callback does no harm`() {
        val monitor = AndroidConnectivity(MonitorFixture.context)
        MonitorFixture.settle()
        MonitorFixture.call(arrival.callbacks)
        // What a second unregistering throws.
        MonitorFixture.service.unregisterNetworkCallback(MonitorFixture.callbacks().single())
        WatchedConnectivityManager.refusals["unregister"] = IllegalArgumentException("NetworkCallback was not registered")
        monitor.close()
        MonitorFixture.awaitNoThread()
        assertEquals(NetworkState.UNKNOWN, monitor.snapshot.state)
    }

    @Test
    fun `after the last close nothing is known, and whoever waits for a network hears of it`() {
        shadowOf(MonitorFixture.service).setActiveNetworkInfo(null)
        val heard = AtomicInteger()
        val monitor = AndroidConnectivity(MonitorFixture.context)
        MonitorFixture.settle()
        assertEquals(NetworkState.OFFLINE, monitor.snapshot.state)
        monitor.subscribe { heard.incrementAndGet() }
        monitor.close()
        MonitorFixture.awaitNoThread()
        assertEquals(NetworkState.UNKNOWN, monitor.snapshot.state)
        assertEquals(1, monitor.snapshot.epoch)
        assertEquals(1, heard.get())
    }

    @Test
    fun `a callback that comes after the close is not heard`() {
        val monitor = AndroidConnectivity(MonitorFixture.context)
        MonitorFixture.settle()
        val callback = MonitorFixture.callbacks().single()
        monitor.close()
        MonitorFixture.awaitNoThread()
        callback.onAvailable(MonitorFixture.network(1))
        assertEquals(NetworkSnapshot.UNKNOWN, monitor.snapshot)
    }

    @Test
    fun `equal facts make no native call`() {
        monitored {
            MonitorFixture.call(arrival.callbacks)
            val before = it.snapshot
            MonitorFixture.call(arrival.callbacks)
            // An answer of the hub's would be another object.
            assertSame(before, it.snapshot)
        }
    }

    @Test
    fun `the app's own word is an edge`() {
        monitored {
            it.restored()
            MonitorFixture.settle()
            assertEquals(1, it.snapshot.epoch)
        }
    }

    @Test
    fun `the app's word is heard even if it comes before the monitor's thread does`() {
        for (closesAtOnce in listOf(false, true)) {
            val monitor = NetworkMonitor(MonitorFixture.context)
            val heard = AtomicInteger()
            monitor.hub.subscribe { heard.incrementAndGet() }
            monitor.post { monitor.hub.restored() }
            if (closesAtOnce) monitor.close()
            monitor.start()
            if (!closesAtOnce) MonitorFixture.settle() else MonitorFixture.awaitNoThread()
            assertEquals(1, monitor.hub.snapshot.epoch)
            assertEquals(1, heard.get())
            monitor.close()
            MonitorFixture.awaitNoThread()
        }
    }

    @Test
    fun `the clock counts the time asleep`() {
        val before = SystemTime.nanos()
        ShadowSystemClock.advanceBy(Duration.ofHours(3))
        assertEquals(Duration.ofHours(3).toNanos(), SystemTime.nanos() - before)
    }

    @Test
    fun `a loss is as old as the clock that counts sleep says`() {
        monitored {
            MonitorFixture.call(arrival.callbacks)
            ShadowSystemClock.advanceBy(Duration.ofHours(3))
            val now = SystemTime.nanos()
            MonitorFixture.call(
                Script
                    .all()
                    .flatMap { it.steps }
                    .flatMap { it.callbacks }
                    .first { it.on == "lost" && it.network == 1L }
                    .let(::listOf),
            )
            assertEquals(NetworkState.OFFLINE, it.snapshot.state)
            assertTrue(it.snapshot.since - now in 0..Duration.ofSeconds(1).toNanos())
        }
    }

    @Test
    fun `when the device leaves idle, and only then, whoever waits looks at the clock again`() {
        monitored {
            val heard = AtomicInteger()
            it.subscribe { heard.incrementAndGet() }
            val power = shadowOf(MonitorFixture.context.getSystemService(Context.POWER_SERVICE) as PowerManager)
            for ((isIdle, expected) in listOf(true to 0, false to 1)) {
                // It sends the broadcast too.
                power.setIsDeviceIdleMode(isIdle)
                shadowOf(android.os.Looper.getMainLooper()).idle()
                MonitorFixture.settle()
                assertEquals(expected, heard.get())
            }
        }
        MonitorFixture.awaitNoThread()
        assertEquals(0, receivers())
    }
}
