// Calls that the phone's network does not concern: to this machine itself, and under `offline = ignore`. To them its state is unknown, and its path never changes.
package dev.comeback.okhttp

import dev.comeback.ManualConnectivity
import dev.comeback.Offline
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.WaitReason
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import kotlin.test.assertEquals

@ParameterizedClass
@EnumSource(Driver::class)
internal class LoopbackTest(
    private val driver: Driver,
) {
    private val ignoring = RetryPolicy { offline = Offline.IGNORE }

    private fun with(test: (LoopbackFixture, ManualConnectivity) -> Unit) =
        ManualConnectivity().use { phone ->
            phone.available(handle = 1)
            LoopbackFixture(driver = driver, configureComeback = { connectivity = phone }).use { test(it, phone) }
        }

    /** The second attempt's wait, after a first that is lost. */
    private fun LoopbackFixture.waitAfterLoss(
        policy: RetryPolicy,
        host: String,
    ): WaitReason {
        server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
        assertEquals(200, calls(policy) { dns { listOf(LOOPBACK) } }.outcomeOf(request(host = host)))
        return heard<RetryEvent.WaitPlanned>().single().why
    }

    @Test
    fun `without a network a call to this machine waits for no network`() =
        with { ground, phone ->
            phone.lost()
            assertEquals(WaitReason.BACKOFF, ground.waitAfterLoss(RetryPolicy.DEFAULT, "127.0.0.1"))
        }

    @Test
    fun `nor does one whose policy ignores the network`() =
        with { ground, phone ->
            phone.lost()
            assertEquals(WaitReason.BACKOFF, ground.waitAfterLoss(ignoring, "printer.test"))
        }

    @Test
    fun `a handover leaves their connections as they are`() =
        with { ground, phone ->
            val calls = ground.calls(RetryPolicy.DEFAULT) { dns { listOf(LOOPBACK) } }
            for (round in 1L..3L) {
                assertEquals(200, calls.readWhole(ground.request()))
                assertEquals(200, calls.readWhole(ground.request(host = "printer.test") { retryPolicy(ignoring) }))
                phone.available(handle = 1 + round)
            }
            assertEquals(listOf(0, 1, 0, 1, 0, 1), ground.received().map { it.connectionIndex })
        }

    @Test
    fun `a call to another host leaves the old path's connections`() =
        with { ground, phone ->
            val calls = ground.calls { dns { listOf(LOOPBACK) } }
            repeat(2) { assertEquals(200, calls.readWhole(ground.request(host = "elsewhere.test"))) }
            phone.available(handle = 2)
            repeat(2) { assertEquals(200, calls.readWhole(ground.request(host = "elsewhere.test"))) }
            assertEquals(listOf(0, 0, 1, 1), ground.received().map { it.connectionIndex })
        }
}
