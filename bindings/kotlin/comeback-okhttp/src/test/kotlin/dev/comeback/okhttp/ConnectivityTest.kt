// The network's return ends a wait, and never one the server asked for.
package dev.comeback.okhttp

import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.WaitReason
import dev.comeback.WokenBy
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.Dns
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.net.UnknownHostException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals

@ParameterizedClass
@EnumSource(Driver::class)
@Timeout(20)
internal class ConnectivityTest(
    private val driver: Driver,
) {
    /** Waits of exactly 8 s. */
    private val slow =
        RetryPolicy {
            baseMillis = 8_000
            capMillis = 8_000
            jitter = Jitter.NONE
        }

    private fun LoopbackFixture.isLost() = server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())

    private fun LoopbackFixture.flap() {
        connectivity.lost()
        connectivity.available()
    }

    private fun LoopbackFixture.resumed() = heard<RetryEvent.Resumed>()

    private fun online(test: (LoopbackFixture) -> Unit) =
        LoopbackFixture(driver = driver).use { ground ->
            ground.connectivity.available()
            test(ground)
        }

    @Test
    fun `the return of the network ends a drawn wait at once`() =
        online { ground ->
            ground.isLost()
            ground.time.at(SECONDS.toNanos(3)) { ground.flap() }
            assertEquals(200, ground.calls(slow).outcomeOf(ground.request()))
            val resumed = ground.resumed().single()
            assertEquals(WokenBy.EDGE, resumed.by)
            assertEquals(3, NANOSECONDS.toSeconds(resumed.effectiveNanos))
            assertEquals(8, NANOSECONDS.toSeconds(resumed.plannedNanos))
        }

    @Test
    fun `a sleeping thread is woken within 50 ms`() {
        val clock = EndlessWaits()
        clock.assertPrompt {
            val woken = CompletableFuture<Long>()
            val noting = RetryListener { if (it is RetryEvent.Resumed) woken.complete(System.nanoTime()) }
            LoopbackFixture(driver = driver, clock = clock, configureComeback = { listener = noting }).use { ground ->
                ground.connectivity.available()
                ground.isLost()
                ground.calls(slow).newCall(ground.request()).future()
                clock.waiting.acquire()
                val before = System.nanoTime()
                ground.flap()
                NANOSECONDS.toMillis(woken.get(10, SECONDS) - before)
            }
        }
    }

    @Test
    fun `an edge during the failing attempt means no wait`() =
        online { ground ->
            assumeTrue(driver == Driver.INTERCEPTOR, "the factory gives such an attempt up")
            val tries = AtomicInteger()
            val client =
                ground.calls(slow) {
                    addInterceptor { chain ->
                        if (tries.incrementAndGet() == 1) ground.flap()
                        chain.proceed(chain.request())
                    }
                }
            ground.isLost()
            assertEquals(200, client.outcomeOf(ground.request()))
            assertEquals(0, ground.resumed().single().effectiveNanos)
            assertEquals(0, ground.time.nanos())
        }

    @Test
    fun `an edge never touches a wait the server asked for`() =
        online { ground ->
            ground.server.enqueue(status(503, "Retry-After" to "5"))
            ground.time.at(SECONDS.toNanos(1)) { ground.flap() }
            ground.time.at(SECONDS.toNanos(7)) { ground.flap() }
            assertEquals(200, ground.calls(slow).outcomeOf(ground.request()))
            val resumed = ground.resumed().single()
            assertEquals(WokenBy.TIMER, resumed.by)
            assertEquals(13, NANOSECONDS.toSeconds(resumed.effectiveNanos))
        }

    @Test
    fun `without a network a failed call is parked until there is one`() =
        online { ground ->
            ground.connectivity.lost()
            ground.time.at(SECONDS.toNanos(6)) { ground.connectivity.available() }
            assertEquals(200, ground.calls { dns(SecondLookUp()) }.outcomeOf(ground.request(host = "one.test")))
            assertEquals(WaitReason.OFFLINE, ground.heard<RetryEvent.WaitPlanned>().single().why)
            assertEquals(6, NANOSECONDS.toSeconds(ground.resumed().single().effectiveNanos))
        }

    @Test
    fun `a tunnel only suspends the network, and its end is an edge`() =
        online { ground ->
            ground.connectivity.capabilities(suspended = true)
            ground.time.at(SECONDS.toNanos(4)) { ground.connectivity.capabilities(suspended = false) }
            ground.isLost()
            assertEquals(200, ground.calls(slow).outcomeOf(ground.request()))
            assertEquals(4, NANOSECONDS.toSeconds(ground.resumed().single().effectiveNanos))
        }

    @Test
    fun `on a flapping link attempts are a second apart and all count`() =
        online { ground ->
            repeat(4) { ground.isLost() }
            repeat(200) { n -> ground.time.at(MILLISECONDS.toNanos(100L * n + 50)) { ground.flap() } }
            ground.calls(slow).outcomeOf(ground.request())
            assertEquals(4, ground.server.requestCount)
            assertEquals(listOf(50L, 1_000L, 1_000L), ground.resumed().map { NANOSECONDS.toMillis(it.effectiveNanos) })
        }

    @Test
    fun `a failed look-up of the system's resolver sets a floor as long as it is cached`() =
        online { ground ->
            val tries = AtomicInteger()
            val client =
                ground.calls(slow) {
                    dns(Dns.SYSTEM)
                    addInterceptor { if (tries.incrementAndGet() == 1) throw UnknownHostException() else it.proceed(it.request()) }
                }
            ground.time.at(SECONDS.toNanos(1)) { ground.flap() }
            assertEquals(200, client.outcomeOf(ground.request()))
            assertEquals(10, NANOSECONDS.toSeconds(ground.resumed().single().effectiveNanos))
            assertEquals(WaitReason.LOOK_UP, ground.heard<RetryEvent.WaitPlanned>().single().why)
        }

    @Test
    fun `another resolver sets none`() =
        online { ground ->
            ground.calls(slow) { dns(SecondLookUp()) }.outcomeOf(ground.request(host = "one.test"))
            assertEquals(0, ground.heard<RetryEvent.WaitPlanned>().single().floorNanos)
        }
}
