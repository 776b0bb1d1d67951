// The start before the app's own code: it must not hold up the main thread, nor take the app down.
package dev.comeback.android

import dev.comeback.NetworkState
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Before
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.annotation.Config

@RunWith(RobolectricTestRunner::class)
@Config(shadows = [WatchedConnectivityManager::class])
internal class InitializerTest {
    @Before
    fun reset() {
        WatchedConnectivityManager.reset()
    }

    @After
    fun end() {
        AndroidConnectivity.stop()
        MonitorFixture.awaitNoThread()
    }

    @Test
    fun `the provider starts the one monitor, which later ones share`() {
        Robolectric.buildContentProvider(ComebackInitializer::class.java).create()
        AndroidConnectivity.start(MonitorFixture.context)
        AndroidConnectivity(MonitorFixture.context).use {
            MonitorFixture.settle()
            assertEquals(1, MonitorFixture.callbacks().size)
        }
        MonitorFixture.settle()
        assertEquals(1, MonitorFixture.callbacks().size)
        assertEquals(1, MonitorFixture.threads().size)
    }

    @Test
    fun `what the provider began to watch is known to a monitor made later`() {
        Robolectric.buildContentProvider(ComebackInitializer::class.java).create()
        MonitorFixture.settle()
        MonitorFixture.call(
            Script
                .all()
                .first()
                .steps
                .first()
                .callbacks,
        )
        AndroidConnectivity(MonitorFixture.context).use { assertEquals(NetworkState.ONLINE, it.snapshot.state) }
    }

    @Test
    fun `the provider does no work on the main thread`() {
        Robolectric.buildContentProvider(ComebackInitializer::class.java).create()
        MonitorFixture.settle()
        assertEquals(setOf("comeback-network"), WatchedConnectivityManager.asked.map { it.second }.toSet())
    }
}
