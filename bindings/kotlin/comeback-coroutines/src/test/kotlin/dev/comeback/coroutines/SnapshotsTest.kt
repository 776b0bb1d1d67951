// The network's snapshots as a flow.
package dev.comeback.coroutines

import dev.comeback.NetworkState
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.runCurrent
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import kotlin.test.assertEquals

@OptIn(ExperimentalCoroutinesApi::class)
class SnapshotsTest {
    @Test
    fun `the value is always the newest snapshot, and nobody is subscribed for it`() =
        runTest {
            val ground = RunTestFixture(this)
            val snapshots = ground.comeback.connectivity.snapshots
            assertEquals(NetworkState.UNKNOWN, snapshots.value.state)
            ground.connectivity.available()
            assertEquals(NetworkState.ONLINE, snapshots.value.state)
            assertEquals(0, ground.watched.listening.get())
        }

    @Test
    fun `a collector sees the first value and each change once`() =
        runTest {
            val ground = RunTestFixture(this)
            val seen =
                async {
                    ground.comeback.connectivity.snapshots
                        .take(3)
                        .toList()
                }
            runCurrent()
            ground.connectivity.available()
            runCurrent()
            ground.connectivity.available()
            ground.connectivity.lost()
            assertEquals(listOf(NetworkState.UNKNOWN, NetworkState.ONLINE, NetworkState.OFFLINE), seen.await().map { it.state })
            assertEquals(0, ground.watched.listening.get())
        }

    @Test
    fun `a collector that is cancelled is subscribed no longer`() =
        runTest {
            val ground = RunTestFixture(this)
            val collecting =
                launch {
                    ground.comeback.connectivity.snapshots
                        .collect { }
                }
            runCurrent()
            assertEquals(1, ground.watched.listening.get())
            collecting.cancel()
            runCurrent()
            assertEquals(0, ground.watched.listening.get())
        }

    @Test
    fun `an app can wait for a network`() =
        runTest {
            val ground = RunTestFixture(this)
            val online =
                async {
                    ground.comeback.connectivity.snapshots
                        .first { it.state == NetworkState.ONLINE }
                }
            runCurrent()
            ground.connectivity.available()
            assertEquals(1, online.await().epoch)
        }
}
