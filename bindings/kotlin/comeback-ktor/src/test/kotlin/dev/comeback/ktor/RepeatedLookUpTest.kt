// Through the OkHttp engine a name that was not found is asked for again, past what the platform remembers of it, and a look-up that hangs ends with its call.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Connectivity
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.driver.NameLookUp
import io.ktor.client.HttpClient
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.engine.okhttp.OkHttpConfig
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.request.get
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import okhttp3.Dispatcher
import okhttp3.Dns
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.api.io.TempDir
import java.io.File
import java.net.InetAddress
import java.net.UnknownHostException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.TimeUnit.SECONDS
import java.util.concurrent.atomic.AtomicInteger
import kotlin.system.exitProcess
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

@Timeout(60)
class RepeatedLookUpTest {
    /** Finds what is in [known], on the network that is named there. */
    private class Platform(
        private val known: Set<Pair<Any, String>> = emptySet(),
        private val hub: ManualConnectivity = ManualConnectivity(concernsLoopback = true),
    ) : Connectivity by hub,
        NameLookUp {
        val asked = CopyOnWriteArrayList<Pair<Any, String>>()

        override val network: Any = "wifi"

        override fun lookUp(
            network: Any,
            host: String,
        ): List<InetAddress> {
            asked += network to host
            if (network to host !in known) throw UnknownHostException(host)
            return listOf(LOOPBACK)
        }
    }

    private val events = CopyOnWriteArrayList<RetryEvent>()
    private val floors get() = events.filterIsInstance<RetryEvent.WaitPlanned>().map { NANOSECONDS.toSeconds(it.floorNanos) }

    private fun on(
        platform: Platform?,
        engine: OkHttpConfig.() -> Unit = {},
        retryPolicy: RetryPolicy = QUICK,
        test: suspend (HttpClient) -> Unit,
    ) {
        Comeback {
            if (platform != null) connectivity = platform
            listener = RetryListener { events += it }
        }.use { app ->
            HttpClient(OkHttp) {
                engine(engine)
                install(app.ktorPlugin) {
                    policy = retryPolicy
                }
            }.use { client -> runBlocking(Dispatchers.Default) { withTimeout(1.minutes) { test(client) } } }
        }
    }

    private fun ScriptedServer.under(host: String) = url.replace("127.0.0.1", host)

    @Test
    fun `the second attempt asks on the default network, and waits for no memory to fade`() {
        val platform = Platform(known = setOf("wifi" to ABSENT))
        ScriptedServer { status(200) }.use { server ->
            on(platform) { client ->
                assertEquals(200, client.get(server.under(ABSENT)).status.value)
                assertEquals(listOf<Pair<Any, String>>("wifi" to ABSENT), platform.asked)
                assertEquals(listOf(0L), floors)
                // A later call asks nobody: the connection serves it.
                assertEquals(200, client.get(server.under(ABSENT)).status.value)
                assertEquals(listOf(1, 1), server.connections.toList())
            }
            assertTrue(server.heads.all { "Host: $ABSENT:" in it }, "${server.heads}")
        }
    }

    @Test
    fun `a first attempt asks as the engine would`() {
        val platform = Platform()
        ScriptedServer { status(200) }.use { server ->
            on(platform) { client -> assertEquals(200, client.get(server.under("localhost")).status.value) }
        }
        assertEquals(emptyList(), platform.asked)
    }

    @Test
    fun `the third asks by the name with its final dot, and only the fourth would wait for what is remembered`() {
        val platform = Platform()
        on(platform) { client -> assertFailsWith<UnknownHostException> { client.get("http://$ABSENT/") } }
        assertEquals(listOf<Pair<Any, String>>("wifi" to ABSENT, "wifi" to "$ABSENT."), platform.asked)
        assertEquals(listOf(0L, 0L), floors)
    }

    @Test
    fun `where nothing is known of networks, the second attempt asks by the name with its final dot`() {
        on(platform = null) { client -> assertFailsWith<UnknownHostException> { client.get("http://$ABSENT/") } }
        assertEquals(listOf(0L), floors)
    }

    @Test
    fun `a name of one label is waited for`() {
        on(platform = null) { client -> assertFailsWith<UnknownHostException> { client.get("http://absent/") } }
        assertEquals(emptyList(), floors)
    }

    @Test
    fun `an app's own resolver keeps its word, wherever it was set`() {
        val places =
            listOf<OkHttpConfig.(Dns) -> Unit>(
                { own -> dns = own },
                { own -> config { dns(own) } },
                { own -> preconfigured = OkHttpClient.Builder().dns(own).build() },
            )
        ScriptedServer { status(200) }.use { server ->
            for (place in places) {
                events.clear()
                val platform = Platform()
                val asked = AtomicInteger()
                val own = Dns { if (asked.incrementAndGet() == 1) throw UnknownHostException(it) else listOf(LOOPBACK) }
                on(platform, { place(own) }) { client -> assertEquals(200, client.get(server.under(ABSENT)).status.value) }
                assertEquals(2, asked.get())
                assertEquals(emptyList(), platform.asked)
                assertEquals(listOf(0L), floors)
            }
        }
    }

    @Test
    fun `calls whose look-ups hang leave OkHttp's slots to others once they have reached their limit`() {
        val isOver = CountDownLatch(1)
        val slots = Dispatcher()
        val hanging = AtomicInteger()
        val resolver =
            Dns { host ->
                hanging.incrementAndGet()
                isOver.await(30, SECONDS)
                hanging.decrementAndGet()
                throw UnknownHostException(host)
            }
        val limited =
            RetryPolicy(QUICK) {
                maxAttempts = 1
                attemptTimeout = 100.milliseconds
            }
        val engine: OkHttpConfig.() -> Unit = {
            config {
                dns(resolver)
                dispatcher(slots)
            }
        }
        on(platform = null, engine, limited) { client ->
            // On a busy machine a call may reach its limit before it asks.
            while (hanging.get() < slots.maxRequestsPerHost) {
                assertFailsWith<HttpRequestTimeoutException> { client.get("http://hangs.test/") }
            }
            while (slots.runningCallsCount() > 0) delay(1)
            assertEquals(slots.maxRequestsPerHost, hanging.get())
            isOver.countDown()
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
                listOf(java, "-Djdk.net.hosts.file=$hosts") + library + listOf("-cp", classPath, LateName::class.java.name, "$hosts"),
            ).redirectErrorStream(true)
                .start()
        val said = process.inputStream.bufferedReader().readText()
        assertEquals(0, process.waitFor(), said)
        assertEquals("200 after 2 attempts in time, as late.test", said.lines().last { it.isNotBlank() }, said)
    }

    internal companion object {
        /** RFC 6761: never exists. */
        const val ABSENT = "absent.invalid"
        val LOOPBACK: InetAddress = InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1))

        /** Does not last until the JVM has forgotten a name, which is 10 s. */
        val QUICK =
            RetryPolicy {
                jitter = Jitter.NONE
                base = 10.milliseconds
                cap = 10.milliseconds
                maxElapsed = 5.seconds
            }
    }
}

/** The name appears in the file once the first look-up has failed. */
internal object LateName {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val hosts = File(arguments[0])
        val server = ScriptedServer { status(200) }
        val through =
            RecordedClient(OkHttp, RepeatedLookUpTest.QUICK, after = {}, onFailure = {
                hosts.appendText("127.0.0.1 late.test\n127.0.0.1 late.test.\n")
            })
        val began = System.nanoTime()
        val status = runBlocking { through.client.get(server.url.replace("127.0.0.1", "late.test")) }.status.value
        val isInTime = System.nanoTime() - began < SECONDS.toNanos(9)
        // Remembered still.
        val remembered = runCatching { InetAddress.getByName("late.test") }.exceptionOrNull()
        check(!isInTime || remembered is UnknownHostException) { "found: nothing had to be got past" }
        val host = Regex("Host: ([^:]*)").find(server.heads.single())?.groupValues?.get(1)
        println("$status after ${through.failed.size + 1} attempts ${if (isInTime) "in time" else "late"}, as $host")
        exitProcess(0)
    }
}
