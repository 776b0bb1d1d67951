// What only a device can show: its own network, its main thread under StrictMode. The Maven build compiles this file and runs nothing of it.
package dev.comeback.android

import android.os.StrictMode
import androidx.test.platform.app.InstrumentationRegistry
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkState
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test
import org.junit.runner.RunWith
import org.junit.runners.JUnit4
import java.net.UnknownHostException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicReference

@OptIn(InternalComebackApi::class)
@RunWith(JUnit4::class)
internal class NetworkOnDevice {
    private val instrumentation = InstrumentationRegistry.getInstrumentation()

    @Test
    fun theDevicesNetworkIsHeard() {
        AndroidConnectivity(instrumentation.targetContext).use { connectivity ->
            val online = CountDownLatch(1)
            connectivity.subscribe { if (connectivity.snapshot.state == NetworkState.ONLINE) online.countDown() }
            if (connectivity.snapshot.state == NetworkState.ONLINE) online.countDown()
            online.await(20, SECONDS)
            assertEquals(NetworkState.ONLINE, connectivity.snapshot.state)
        }
    }

    @Test
    fun aNameIsLookedUpOnTheDevicesNetworkByItsFinalDotToo() {
        AndroidConnectivity(instrumentation.targetContext).use { connectivity ->
            val known = CountDownLatch(1)
            connectivity.subscribe { if (connectivity.network != null) known.countDown() }
            if (connectivity.network != null) known.countDown()
            known.await(20, SECONDS)
            val network = checkNotNull(connectivity.network)
            // RFC 6761: never exists. How fast that is found out is the resolver's; that nothing else is thrown and nothing hangs is ours.
            for (name in listOf("absent.invalid", "absent.invalid.")) {
                assertThrows(UnknownHostException::class.java) { connectivity.lookUp(network, name) }
            }
        }
    }

    @Test
    fun startingAndClosingDoNothingOnTheMainThreadThatStrictModeForbids() {
        val thrown = AtomicReference<Throwable>()
        instrumentation.runOnMainSync {
            val before = StrictMode.getThreadPolicy()
            StrictMode.setThreadPolicy(
                StrictMode.ThreadPolicy
                    .Builder()
                    .detectAll()
                    .penaltyDeath()
                    .build(),
            )
            try {
                val connectivity = AndroidConnectivity(instrumentation.targetContext)
                connectivity.snapshot
                connectivity.restored()
                connectivity.close()
            } catch (forbidden: Throwable) {
                thrown.set(forbidden)
            } finally {
                StrictMode.setThreadPolicy(before)
            }
        }
        thrown.get()?.let { throw it }
    }
}
