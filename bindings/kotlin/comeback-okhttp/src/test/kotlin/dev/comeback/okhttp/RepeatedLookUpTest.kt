// A name that was not found is asked for again where the platform knows how.
package dev.comeback.okhttp

import dev.comeback.Connectivity
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.driver.NameLookUp
import dev.comeback.okhttp.internal.RepeatedLookUp
import okhttp3.Dns
import okhttp3.Interceptor
import okhttp3.Response
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import java.net.InetAddress
import java.net.UnknownHostException
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertIs

@Timeout(60)
internal class RepeatedLookUpTest {
    private class Platform(
        private val remembersFailures: Boolean = false,
        private val hub: ManualConnectivity = ManualConnectivity(concernsLoopback = true),
        private val found: List<InetAddress>? = listOf(LOOPBACK),
    ) : Connectivity by hub,
        NameLookUp {
        val asked = AtomicInteger()

        @Volatile
        override var network: Any? = "wifi"

        override fun remembersFailureOn(network: Any?): Boolean = remembersFailures && network == this.network

        override fun lookUpAgain(host: String): List<InetAddress>? {
            asked.incrementAndGet()
            return found
        }
    }

    /** The network changes under one attempt, before any name is asked for. */
    private class Handover(
        private val platform: Platform,
        private val inAttempt: Int = 1,
    ) : Interceptor {
        private val attempts = AtomicInteger()

        override fun intercept(chain: Interceptor.Chain): Response {
            if (attempts.incrementAndGet() == inAttempt) platform.network = "cellular"
            return chain.proceed(chain.request())
        }
    }

    private val policy =
        RetryPolicy {
            jitter = Jitter.NONE
            maxAttempts = 2
        }

    private fun on(
        platform: Platform,
        driver: Driver = Driver.INTERCEPTOR,
        test: (LoopbackFixture) -> Unit,
    ) = LoopbackFixture(driver = driver, configureComeback = { connectivity = platform }).use(test)

    private fun LoopbackFixture.floor() = heard<RetryEvent.WaitPlanned>().first().floorNanos

    @Test
    fun `the second attempt finds the name past what the system remembers, and waits for no memory to fade`() {
        val platform = Platform()
        on(platform) { ground ->
            assertEquals(200, ground.client(policy).outcomeOf(ground.request(host = ABSENT)))
            assertEquals(1, platform.asked.get())
            assertEquals(0, ground.floor())
        }
    }

    @Test
    fun `a first attempt asks as the client would`() {
        val platform = Platform()
        on(platform) { ground ->
            assertEquals(200, ground.client(policy).outcomeOf(ground.request()))
            assertEquals(0, platform.asked.get())
        }
    }

    @Test
    fun `where the platform remembers too, the memory of the same network is waited for`() {
        on(Platform(remembersFailures = true)) { ground ->
            assertEquals(200, ground.client(policy).outcomeOf(ground.request(host = ABSENT)))
            assertEquals(SECONDS.toNanos(10), ground.floor())
        }
    }

    @Test
    fun `where the platform remembers too, a handover in the attempt leaves its memory behind`() {
        for (driver in Driver.entries) {
            val platform = Platform(remembersFailures = true)
            on(platform, driver) { ground ->
                val calls = ground.calls(policy) { addInterceptor(Handover(platform)) }
                assertEquals(200, calls.outcomeOf(ground.request(host = ABSENT)), "$driver")
                assertEquals(0, ground.floor(), "$driver")
            }
        }
    }

    @Test
    fun `a handover before a call is none in it, nor one in an earlier attempt`() {
        for (driver in Driver.entries) {
            val platform = Platform(remembersFailures = true, found = null)
            on(platform, driver) { ground ->
                val calls = ground.calls(policy) { addInterceptor(Handover(platform, inAttempt = 2)) }
                platform.network = "ethernet"
                assertIs<UnknownHostException>(calls.outcomeOf(ground.request(host = ABSENT)), "$driver")
                assertEquals(SECONDS.toNanos(10), ground.floor(), "$driver")
            }
            val steady = Platform(remembersFailures = true, found = null)
            on(steady, driver) { ground ->
                val three = RetryPolicy(policy) { maxAttempts = 3 }
                val calls = ground.calls(three) { addInterceptor(Handover(steady, inAttempt = 1)) }
                assertIs<UnknownHostException>(calls.outcomeOf(ground.request(host = ABSENT)), "$driver")
                assertEquals(listOf(0, SECONDS.toNanos(10)), ground.heard<RetryEvent.WaitPlanned>().map { it.floorNanos }, "$driver")
            }
        }
    }

    @Test
    fun `what the platform does not find either the system is asked for`() {
        val platform = Platform(found = null)
        on(platform) { ground ->
            assertIs<UnknownHostException>(ground.client(policy).outcomeOf(ground.request(host = ABSENT)))
            assertEquals(1, platform.asked.get())
        }
    }

    @Test
    fun `an app's own resolver keeps its word`() {
        val platform = Platform()
        val asked = AtomicInteger()
        on(platform) { ground ->
            val client =
                ground.client(policy).newBuilder().dns(
                    object : Dns {
                        override fun lookup(hostname: String): List<InetAddress> =
                            if (asked.incrementAndGet() == 1) throw UnknownHostException(hostname) else listOf(LOOPBACK)
                    },
                )
            assertEquals(200, client.build().outcomeOf(ground.request(host = ABSENT)))
            assertEquals(2, asked.get())
            assertEquals(0, platform.asked.get())
        }
    }

    @Test
    fun `all calls of a Comeback have one resolver, so that their connections are shared`() {
        val platform = Platform()
        on(platform) {
            assertEquals(RepeatedLookUp.insteadOf(Dns.SYSTEM, platform), RepeatedLookUp.insteadOf(Dns.SYSTEM, platform))
        }
    }

    private companion object {
        /** RFC 6761: never exists. */
        const val ABSENT = "absent.invalid"
    }
}
