// A name that was not found is asked for again where the platform knows how.
package dev.comeback.okhttp

import dev.comeback.Connectivity
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.NameLookUp
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import okhttp3.Dns
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
        override val remembersFailures: Boolean = false,
        private val hub: ManualConnectivity = ManualConnectivity(),
        private val found: List<InetAddress>? = listOf(LOOPBACK),
    ) : Connectivity by hub,
        NameLookUp {
        val asked = AtomicInteger()

        override fun lookUpAgain(host: String): List<InetAddress>? {
            asked.incrementAndGet()
            return found
        }
    }

    private val policy =
        RetryPolicy {
            jitter = Jitter.NONE
            maxAttempts = 2
        }

    private fun on(
        platform: Platform,
        test: (Ground) -> Unit,
    ) = Ground(configureComeback = { connectivity = platform }).use(test)

    private fun Ground.floor() = heard<RetryEvent.WaitPlanned>().first().floorNanos

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
        on(platform) { ground ->
            assertEquals(RepeatedLookUp.insteadOf(Dns.SYSTEM, ground.comeback), RepeatedLookUp.insteadOf(Dns.SYSTEM, ground.comeback))
        }
    }

    private companion object {
        /** RFC 6761: never exists. */
        const val ABSENT = "absent.invalid"
    }
}
