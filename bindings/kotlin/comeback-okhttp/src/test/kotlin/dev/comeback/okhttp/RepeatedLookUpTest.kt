// A name that was not found is asked for again, past what the platform remembers of it.
package dev.comeback.okhttp

import dev.comeback.Connectivity
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.driver.NameLookUp
import okhttp3.Dns
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Response
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.File
import java.net.InetAddress
import java.net.UnknownHostException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertIs

@Timeout(60)
@ParameterizedClass
@EnumSource(Driver::class)
internal class RepeatedLookUpTest(
    private val driver: Driver,
) {
    /** Finds what is in [known], and on the networks named there. */
    private class Platform(
        private val known: Set<Pair<Any, String>> = emptySet(),
        private val hub: ManualConnectivity = ManualConnectivity(concernsLoopback = true),
    ) : Connectivity by hub,
        NameLookUp {
        val asked = CopyOnWriteArrayList<Pair<Any, String>>()

        @Volatile
        override var network: Any? = "wifi"

        override fun lookUp(
            network: Any,
            host: String,
        ): List<InetAddress> {
            asked += network to host
            if (network to host !in known) throw UnknownHostException(host)
            return listOf(LOOPBACK)
        }
    }

    private val policy =
        RetryPolicy {
            jitter = Jitter.NONE
            baseMillis = 1_000
            maxAttempts = 4
            maxElapsedMillis = 60_000
        }

    private fun on(
        platform: Platform?,
        test: (LoopbackFixture) -> Unit,
    ) = LoopbackFixture(driver = driver, configureComeback = { if (platform != null) connectivity = platform }).use(test)

    private fun LoopbackFixture.floors() =
        heard<RetryEvent.WaitPlanned>().map {
            SECONDS.convert(it.floorNanos, java.util.concurrent.TimeUnit.NANOSECONDS)
        }

    @Test
    fun `the second attempt asks on the default network, and waits for no memory to fade`() {
        val platform = Platform(known = setOf("wifi" to ABSENT))
        on(platform) { fixture ->
            val calls = fixture.calls(policy)
            assertEquals(200, calls.readWhole(fixture.request(host = ABSENT)))
            assertEquals(listOf<Pair<Any, String>>("wifi" to ABSENT), platform.asked)
            assertEquals(listOf(0L), fixture.floors())
            // A later first attempt asks nobody: the connection serves it.
            assertEquals(200, calls.readWhole(fixture.request(host = ABSENT)))
            assertEquals(listOf(0, 0), fixture.received().map { it.connectionIndex })
        }
    }

    @Test
    fun `a first attempt asks as the client would`() {
        val platform = Platform()
        on(platform) { fixture ->
            assertEquals(200, fixture.calls(policy).outcomeOf(fixture.request()))
            assertEquals(emptyList(), platform.asked)
        }
    }

    @Test
    fun `the third asks by the name with its final dot, and only the fourth waits for what is remembered`() {
        val platform = Platform()
        on(platform) { fixture ->
            assertIs<UnknownHostException>(fixture.calls(policy).outcomeOf(fixture.request(host = ABSENT)))
            assertEquals(listOf<Pair<Any, String>>("wifi" to ABSENT, "wifi" to "$ABSENT.", "wifi" to ABSENT), platform.asked)
            // Asked at 1 s, and at 3 s; remembered until 11 s.
            assertEquals(listOf(0L, 0L, 8L), fixture.floors())
        }
    }

    @Test
    fun `another network remembers nothing`() {
        val platform = Platform(known = setOf("cellular" to ABSENT))
        on(platform) { fixture ->
            val attempts = AtomicInteger()
            val handover =
                Interceptor { chain ->
                    if (attempts.incrementAndGet() == 3) platform.network = "cellular"
                    chain.proceed(chain.request())
                }
            assertEquals(200, fixture.calls(policy) { addInterceptor(handover) }.outcomeOf(fixture.request(host = ABSENT)))
            assertEquals("cellular" to ABSENT, platform.asked.last())
            assertEquals(listOf(0L, 0L), fixture.floors())
        }
    }

    @Test
    fun `where nothing is known of networks, the second attempt asks by the name with its final dot`() =
        on(platform = null) { fixture ->
            assertIs<UnknownHostException>(fixture.calls(policy).outcomeOf(fixture.request(host = ABSENT)))
            assertEquals(listOf(0L, 9L), fixture.floors().take(2))
        }

    @Test
    fun `a name of one label is waited for`() =
        on(platform = null) { fixture ->
            fixture.calls(RetryPolicy(policy) { maxAttempts = 2 }).outcomeOf(fixture.request(host = "absent"))
            assertEquals(listOf(10L), fixture.floors())
        }

    @Test
    fun `an app's own resolver keeps its word`() {
        val platform = Platform()
        val asked = AtomicInteger()
        on(platform) { fixture ->
            val resolver = Dns { if (asked.incrementAndGet() == 1) throw UnknownHostException(it) else listOf(LOOPBACK) }
            assertEquals(200, fixture.calls(policy) { dns(resolver) }.outcomeOf(fixture.request(host = ABSENT)))
            assertEquals(2, asked.get())
            assertEquals(emptyList(), platform.asked)
            assertEquals(listOf(0L), fixture.floors())
        }
    }

    /** In a virtual machine of its own, whose names come from a file. */
    @Test
    fun `this machine's resolver finds the name at the second attempt, while it remembers the first`(
        @TempDir folder: File,
    ) {
        val hosts = folder.resolve("hosts").apply { writeText("127.0.0.1 other.test\n") }
        val java = File(System.getProperty("java.home"), "bin/java").path
        val classPath = System.getProperty("surefire.test.class.path") ?: System.getProperty("java.class.path")
        // The tests' native library, where it is not the jar's.
        val library = listOfNotNull(System.getProperty("jna.library.path")).map { "-Djna.library.path=$it" }
        val process =
            ProcessBuilder(
                listOf(java, "-Djdk.net.hosts.file=$hosts") + library +
                    listOf("-cp", classPath, LateName::class.java.name, "$hosts", "$driver"),
            ).redirectErrorStream(true)
                .start()
        val said = process.inputStream.bufferedReader().readText()
        assertEquals(0, process.waitFor(), said)
        assertEquals("200 after 2 attempts in time, Host: late.test", said.lines().last { it.isNotBlank() }, said)
    }

    internal companion object {
        /** RFC 6761: never exists. */
        const val ABSENT = "absent.invalid"
    }
}

/** The name appears in the file once the first look-up has failed. */
internal object LateName {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val hosts = File(arguments[0])
        val quick =
            RetryPolicy {
                jitter = Jitter.NONE
                baseMillis = 100
            }
        val events = CopyOnWriteArrayList<RetryEvent>()
        LoopbackFixture(
            clock = dev.comeback.driver.SystemTime,
            driver = Driver.valueOf(arguments[1]),
            configureComeback = {
                listener =
                    dev.comeback.RetryListener {
                        events += it
                        if (it is RetryEvent.AttemptFailed) hosts.appendText("127.0.0.1 late.test\n127.0.0.1 late.test.\n")
                    }
            },
        ).use { fixture ->
            val began = System.nanoTime()
            val status = fixture.calls(quick).outcomeOf(fixture.request(host = "late.test"))
            val isInTime = System.nanoTime() - began < SECONDS.toNanos(9)
            val host =
                fixture
                    .received()
                    .single()
                    .headers["Host"]
                    .orEmpty()
                    .substringBefore(':')
            // Remembered still.
            val remembered = runCatching { InetAddress.getByName("late.test") }.exceptionOrNull()
            check(!isInTime || remembered is UnknownHostException) { "found: nothing had to be got past" }
            println(
                "$status after ${events.count {
                    it is RetryEvent.AttemptFailed
                } + 1} attempts ${if (isInTime) "in time" else "late"}, Host: $host",
            )
        }
        System.exit(0)
    }
}
