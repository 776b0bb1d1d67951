// Calls that the phone's network does not concern.
package dev.comeback

import dev.comeback.World.Companion.RESET
import dev.comeback.World.Companion.SECOND
import dev.comeback.World.Companion.STEADY
import dev.comeback.driver.CallNetwork
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.RequestFacts
import dev.comeback.internal.NativeCore
import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertSame

internal class CallNetworkTest {
    private val world = World()

    private fun networkFor(
        host: String?,
        policy: RetryPolicy = STEADY,
    ): CallNetwork = world.comeback.networkFor(policy.driverFacts, host)

    private fun session(
        network: CallNetwork,
        policy: RetryPolicy = STEADY,
    ) = CallSession(world.comeback, policy, null, RequestFacts("GET"), seed = 1, network = network).apply { noteAttempt() }

    /** Waits as if nothing were known, although the phone is offline, and hears of no edge. */
    private fun assertKnowsNothing(session: CallSession) {
        assertEquals(NetworkSnapshot.UNKNOWN, session.noted)
        val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
        assertEquals(
            WaitReason.BACKOFF,
            world.heard
                .filterIsInstance<RetryEvent.WaitPlanned>()
                .single()
                .why,
        )
        var wakes = 0
        session.wakeEarly(sleep) { wakes++ }.use {
            world.connectivity.available()
            assertEquals(0, wakes)
            assertIs<NextStep.Sleep>(session.woken())
            world.comeback.close()
            assertEquals(1, wakes)
        }
    }

    private fun Subscription.use(action: () -> Unit) {
        try {
            action()
        } finally {
            close()
        }
    }

    private fun goOffline() {
        world.connectivity.available()
        world.connectivity.lost()
    }

    @Test
    fun `a call to this machine knows nothing of the network`() {
        goOffline()
        assertKnowsNothing(session(networkFor("127.0.0.1")))
    }

    @Test
    fun `a call whose policy ignores the network knows nothing of it, whatever its adapter hands over`() {
        goOffline()
        val ignoring = RetryPolicy(STEADY) { offline = Offline.IGNORE }
        assertKnowsNothing(CallSession(world.comeback, ignoring, null, RequestFacts("GET"), seed = 1).apply { noteAttempt() })
    }

    @Test
    fun `a call to any other host knows what there is to know`() {
        goOffline()
        val session = session(networkFor("example.org"))
        assertEquals(world.comeback.snapshot, session.noted)
        session.failed(RESET)
        assertEquals(
            WaitReason.OFFLINE,
            world.heard
                .filterIsInstance<RetryEvent.WaitPlanned>()
                .single()
                .why,
        )
    }

    @Test
    fun `connectivity that concerns loopback hosts concerns calls to them`() {
        val time = TestTime(now = SECOND)
        val network = ManualConnectivity(time, NativeCore, concernsLoopback = true).apply { available() }
        val comeback = Comeback(network, null, time, NativeCore)
        assertEquals(network.snapshot, comeback.networkFor(STEADY.driverFacts, "localhost").snapshot)
    }

    @Test
    fun `asking for it allocates nothing`() {
        assertSame(networkFor("localhost"), networkFor("::1"))
        assertSame(networkFor("example.org"), networkFor(null))
    }
}
