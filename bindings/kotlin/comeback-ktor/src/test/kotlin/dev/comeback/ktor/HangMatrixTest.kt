// Wherever an attempt hangs and whoever ends it: the caller has its answer in time, and nothing is left of the attempt.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.prepareGet
import io.ktor.client.request.setBody
import io.ktor.client.statement.bodyAsText
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import okhttp3.Dns
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import java.io.File
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.UnknownHostException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.concurrent.thread
import kotlin.test.assertTrue
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource

class HangMatrixTest {
    private enum class Driver(
        val isCio: Boolean = false,
        val isBlock: Boolean = false,
    ) {
        OKHTTP,
        CIO(isCio = true),
        BLOCK(isBlock = true),
    }

    private enum class Hang { LOOK_UP, CONNECT, TLS, UPLOAD, HEAD, BODY }

    private enum class EndedBy { ATTEMPT_TIMEOUT, CUT, HTTP_TIMEOUT, WITH_TIMEOUT, CANCEL }

    private val app = Comeback()

    @AfterEach
    fun close() = app.close()

    /** Of the cell that is tested now: until then a look-up hangs. */
    @Volatile
    private var looked = CountDownLatch(0)
    private val hangingDns =
        Dns { host ->
            looked.await(20, SECONDS)
            throw UnknownHostException(host)
        }

    @TestFactory
    fun `the caller has its answer within 100 ms of the limit, and within 10 s nothing is left`(): List<DynamicTest> =
        Driver.entries.flatMap { driver ->
            Hang.entries.flatMap { hang ->
                EndedBy.entries.mapNotNull { end ->
                    // CIO looks names up in the platform alone, which takes no resolver of a test's.
                    if (driver.isCio && hang == Hang.LOOK_UP) return@mapNotNull null
                    dynamicTest("$driver, $hang, $end") { cell(driver, hang, end) }
                }
            }
        }

    private fun cell(
        driver: Driver,
        hang: Hang,
        end: EndedBy,
    ) {
        val before = openSockets()
        // The best of some, less what the machine itself was late: other programs on it may hold up all of this one.
        val late = (1..5).asSequence().map { lateBy { once(driver, hang, end) } }.firstOrNull { it <= IN_TIME }
        assertTrue(late != null, "later than $IN_TIME, five times")
        val began = TimeSource.Monotonic.markNow()
        while (openSockets() > before || callsUnderWay() > 0) {
            assertTrue(began.elapsedNow() < 10.seconds, "sockets ${openSockets()}, were $before; calls ${callsUnderWay()}")
            Thread.sleep(10)
        }
    }

    /** How much later than the limit [wait] ended, and later than a thread that only sleeps for as long. */
    private fun lateBy(wait: () -> Duration): Duration {
        var asleep = Duration.ZERO
        val sleeper =
            thread {
                val began = TimeSource.Monotonic.markNow()
                Thread.sleep(LIMIT.inWholeMilliseconds)
                asleep = began.elapsedNow()
            }
        val waited = wait()
        sleeper.join()
        return waited - maxOf(asleep, LIMIT)
    }

    /** How long the caller waited. */
    private fun once(
        driver: Driver,
        hang: Hang,
        end: EndedBy,
    ): Duration =
        HangingPlace(hang).use { place ->
            client(driver, end).use { client ->
                runBlocking(Dispatchers.Default) {
                    withTimeout(1.minutes) {
                        // Neither loading classes nor the first connection is what is measured.
                        if (hang != Hang.LOOK_UP) warm(client)
                        ended(end) { call(client, driver, hang, place, policy(end)) }
                    }
                }
            }
        }

    private suspend fun ended(
        end: EndedBy,
        call: suspend () -> Unit,
    ): Duration {
        val began = TimeSource.Monotonic.markNow()
        val bounded: suspend () -> Unit = { if (end == EndedBy.WITH_TIMEOUT) withTimeout(LIMIT) { call() } else call() }
        if (end == EndedBy.CANCEL) {
            coroutineScope {
                val calling = launch { bounded() }
                delay(LIMIT)
                calling.cancel()
                calling.join()
            }
        } else {
            val left = runCatching { bounded() }
            assertTrue(left.isFailure, "an answer came")
        }
        val took = began.elapsedNow()
        assertTrue(took >= LIMIT - 5.milliseconds, "ended after $took, by something else")
        return took
    }

    private suspend fun call(
        client: HttpClient,
        driver: Driver,
        hang: Hang,
        place: HangingPlace,
        policy: RetryPolicy,
    ) {
        val send: suspend () -> Unit = {
            if (hang == Hang.UPLOAD) {
                client.post(place.url) {
                    retryPolicy(policy)
                    setBody(BIG)
                }
            } else {
                client.prepareGet(place.url) { retryPolicy(policy) }.execute { it.bodyAsText() }
            }
        }
        if (driver.isBlock) app.retry(policy) { send() } else send()
    }

    private suspend fun warm(client: HttpClient) {
        // With a client's own limit that may take too long.
        ScriptedServer { status(200) }.use { runCatching { client.get(it.url) } }
    }

    private fun policy(end: EndedBy) =
        RetryPolicy {
            maxAttempts = 1
            readBody = 64 * 1024
            if (end == EndedBy.ATTEMPT_TIMEOUT) attemptTimeout = LIMIT
            if (end == EndedBy.CUT) {
                // The last start is 100 ms before it.
                maxElapsed = LIMIT
                cutAtDeadline = true
            }
        }

    private fun client(
        driver: Driver,
        end: EndedBy,
    ): HttpClient {
        val configure: HttpClientConfig<*>.() -> Unit = {
            if (end == EndedBy.HTTP_TIMEOUT) install(HttpTimeout) { requestTimeoutMillis = LIMIT.inWholeMilliseconds }
            if (!driver.isBlock) install(app.ktorPlugin)
        }
        return if (driver.isCio) {
            HttpClient(CIO, configure)
        } else {
            HttpClient(OkHttp) {
                engine { config { dns { host -> if (host == HANGING) hangingDns.lookup(host) else Dns.SYSTEM.lookup(host) } } }
                configure()
            }
        }
    }

    /** A server that hangs at [hang]. */
    private inner class HangingPlace(
        private val hang: Hang,
    ) : AutoCloseable {
        private val endOfLookUps = CountDownLatch(1).also { looked = it }
        private val full = if (hang == Hang.CONNECT) ServerSocket(0, 1, LOOPBACK) else null

        /** Linux takes no connection more once so many wait to be accepted. */
        private val waiting = full?.let { List(2) { Socket(LOOPBACK, full.localPort) } }.orEmpty()
        private val silent = if (hang == Hang.TLS || hang == Hang.UPLOAD) ServerSocket(0, 50, LOOPBACK) else null
        private val server =
            ScriptedServer {
                if (hang == Hang.BODY) say("HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\n01234")
                stall()
            }

        val url =
            when (hang) {
                Hang.LOOK_UP -> "http://$HANGING/"
                Hang.CONNECT -> "http://127.0.0.1:${full?.localPort}/"
                Hang.TLS -> "https://127.0.0.1:${silent?.localPort}/"
                Hang.UPLOAD -> "http://127.0.0.1:${silent?.localPort}/"
                else -> server.url
            }

        override fun close() {
            endOfLookUps.countDown()
            waiting.forEach { it.close() }
            full?.close()
            silent?.close()
            server.close()
        }
    }

    private fun openSockets(): Int =
        File("/proc/self/fd").listFiles().orEmpty().count {
            runCatching { it.canonicalPath.contains("socket:") }.getOrDefault(false)
        }

    private fun callsUnderWay(): Int =
        Thread.getAllStackTraces().values.count { stack -> stack.any { it.className.startsWith("okhttp3.internal.connection.RealCall") } }

    private companion object {
        val LIMIT = 200.milliseconds
        val IN_TIME = 100.milliseconds
        val LOOPBACK: InetAddress = InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1))
        const val HANGING = "hangs.test"

        /** More than the sockets' buffers take. */
        val BIG = ByteArray(16 * 1024 * 1024)
    }
}
