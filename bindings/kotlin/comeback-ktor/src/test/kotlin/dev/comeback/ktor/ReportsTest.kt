// What the caller learns: the reason, the attempts, and whether the request may have arrived; by facts of the request that went out.
package dev.comeback.ktor

import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.coroutines.retry
import dev.comeback.mayHaveArrived
import dev.comeback.retryReport
import io.ktor.client.call.HttpClientCall
import io.ktor.client.plugins.ClientRequestException
import io.ktor.client.plugins.HttpResponseValidator
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.Sender
import io.ktor.client.plugins.ServerResponseException
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.get
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.http.HttpMethod
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.runTest
import java.io.IOException
import java.net.ConnectException
import java.net.SocketException
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

@OptIn(ExperimentalCoroutinesApi::class)
class ReportsTest {
    @Test
    fun `an exception because of expectSuccess has the report of its answer`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client(before = { expectSuccess = true }) { status(503) }
            val left = assertFailsWith<ServerResponseException> { client.get("http://host/") }
            assertEquals(StopReason.Attempts, left.retryReport?.reason)
            assertEquals(4, left.retryReport?.attempts?.size)
            assertTrue(left.mayHaveArrived)
        }

    @Test
    fun `so has one that the app's own validator makes, and without one it has arrived`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client(before = { expectSuccess = true }) { status(404) }
            assertTrue(assertFailsWith<ClientRequestException> { client.get("http://host/") }.mayHaveArrived)
            val validated =
                ground.client(before = {
                    HttpResponseValidator { validateResponse { if (it.status.value == 503) throw IOException("theirs") } }
                }) { status(503) }
            assertEquals(StopReason.Attempts, assertFailsWith<IOException> { validated.get("http://host/") }.retryReport?.reason)
        }

    @Test
    fun `a request's policy above the client's cap on sends stops before it, with the last answer and the reason`() =
        runTest {
            val ground = MockEngineFixture(this)
            val many =
                RetryPolicy(MockEngineFixture.STEADY) {
                    maxAttempts = 50
                    base = 1.milliseconds
                    cap = 1.milliseconds
                }
            val client = ground.client { status(503) }
            val response = client.get("http://host/") { retryPolicy(many) }
            assertEquals(503, response.status.value)
            assertEquals(StopReason.Attempts, response.retryReport?.reason)
            assertEquals(20, ground.sent.size)
            val lower =
                ground.client(
                    configure = { maxSendCount = 6 },
                    before = { install(HttpSend) { maxSendCount = 6 } },
                ) { throw SocketException("reset") }
            val left = assertFailsWith<SocketException> { lower.get("http://host/") { retryPolicy(many) } }
            assertEquals(StopReason.Attempts, left.retryReport?.reason)
            assertEquals(26, ground.sent.size)
        }

    @Test
    fun `the cap counts what plugins further in send too`() =
        runTest {
            val ground = MockEngineFixture(this)
            val many =
                RetryPolicy(MockEngineFixture.STEADY) {
                    maxAttempts = 50
                    base = 1.milliseconds
                    cap = 1.milliseconds
                }
            val client = ground.client { status(503) }
            client.plugin(HttpSend).intercept { request ->
                execute(request)
                execute(request)
            }
            val response = client.get("http://host/") { retryPolicy(many) }
            assertEquals(503, response.status.value)
            assertEquals(20, ground.sent.size)
        }

    @Test
    fun `facts are those of the request that went out`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(504) }
            client.plugin(HttpSend).intercept { request ->
                request.headers["Cache-Control"] = "no-transform, only-if-cached"
                execute(request)
            }
            assertEquals(504, client.get("http://host/").status.value)
            assertEquals(1, ground.sent.size)
        }

    @Test
    fun `only-if-cached is a directive, not a piece of text`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(504) }
            client.get("http://host/") { header("Cache-Control", "not-only-if-cached, x=\"only-if-cached\"") }
            assertEquals(4, ground.sent.size)
        }

    @Test
    fun `a blank key is none`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(503) }
            client.post("http://host/") { header(MockEngineFixture.KEY, " ") }
            assertEquals(1, ground.sent.size)
        }

    private fun assertNotRepeatable(
        sent: Int,
        plugin: suspend Sender.(HttpRequestBuilder) -> HttpClientCall,
    ) = runTest {
        val ground = MockEngineFixture(this)
        val client = ground.client { status(503) }
        client.plugin(HttpSend).intercept { plugin(it) }
        assertEquals(StopReason.NotRepeatable, client.get("http://host/").retryReport?.reason)
        assertEquals(sent, ground.sent.size)
    }

    @Test
    fun `a GET that a plugin further in makes a POST is judged as one`() =
        assertNotRepeatable(sent = 1) { request ->
            request.method = HttpMethod.Post
            execute(request)
        }

    @Test
    fun `a POST that a plugin further in sends before a GET is judged too`() =
        assertNotRepeatable(sent = 2) { request ->
            request.method = HttpMethod.Post
            execute(request)
            request.method = HttpMethod.Get
            execute(request)
        }

    @Test
    fun `what ended never sent has not arrived, cancelled in a wait or not`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { throw ConnectException("refused") }
            val left = assertFailsWith<ConnectException> { client.post("http://host/") }
            assertFalse(left.mayHaveArrived)
            val call = launch(start = CoroutineStart.UNDISPATCHED) { client.post("http://host/") }
            advanceTimeBy(500)
            call.cancel()
            call.join()
            assertEquals(listOf(false, false), ground.finished.map { it.mayHaveArrived })
        }

    @Test
    fun `once an attempt may have arrived the call has, however later ones end`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number == 1) status(503) else throw ConnectException("refused") }
            val left = assertFailsWith<ConnectException> { client.get("http://host/") }
            assertTrue(left.mayHaveArrived)
        }

    @Test
    fun `a call that is cancelled in flight may have arrived`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { awaitCancellation() }
            val call = async { client.post("http://host/") }
            advanceTimeBy(500)
            call.cancel()
            call.join()
            assertTrue(ground.finished.single().mayHaveArrived)
        }

    @Test
    fun `a redirect that was answered and then refused has arrived, and is in doubt`() =
        runTest {
            val ground = MockEngineFixture(this)
            val redirect = "Location" to "http://other/"
            val client = ground.client { number -> if (number == 1) status(307, redirect) else throw ConnectException("refused") }
            val once = RetryPolicy(MockEngineFixture.STEADY) { maxAttempts = 1 }
            val left = runCatching { client.get("http://host/") { retryPolicy(once) } }.exceptionOrNull()
            assertTrue(assertNotNull(left).mayHaveArrived)
        }

    @Test
    fun `a failure that no engine had a part in proves nothing`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(200) }
            client.plugin(HttpSend).intercept { throw ConnectException("another client's") }
            val left = assertFailsWith<ConnectException> { client.post("http://host/") }
            assertEquals(StopReason.NotRepeatable, left.retryReport?.reason)
            assertTrue(left.mayHaveArrived)
        }

    @Test
    fun `a block around the plugin is repeated only if what it sent may be`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { throw SocketException("reset") }
            assertFailsWith<SocketException> { ground.comeback.retry(MockEngineFixture.STEADY) { client.post("http://host/") } }
            assertEquals(1, ground.sent.size)
            assertFailsWith<SocketException> { ground.comeback.retry(MockEngineFixture.STEADY) { client.get("http://host/") } }
            assertEquals(5, ground.sent.size)
        }

    @Test
    fun `a block whose answered order is followed by a failure is not repeated`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number == 1) status(200) else throw SocketException("reset") }
            val left =
                assertFailsWith<SocketException> {
                    ground.comeback.retry(MockEngineFixture.STEADY) {
                        client.post("http://host/")
                        client.get("http://host/")
                    }
                }
            assertEquals(StopReason.NotRepeatable, left.retryReport?.reason)
            assertEquals(2, ground.sent.size)
        }

    @Test
    fun `a key that the plugin makes inside a block does not make it repeatable`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { throw SocketException("reset") }
            assertFailsWith<SocketException> {
                ground.comeback.retry(
                    MockEngineFixture.STEADY,
                ) { client.post("http://host/") { makeIdempotencyKey() } }
            }
            assertEquals(1, ground.sent.size)
            assertNotNull(ground.sent.single().headers[MockEngineFixture.KEY])
        }

    @Test
    fun `the attempt's own key does`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { throw SocketException("reset") }
            assertFailsWith<SocketException> {
                ground.comeback.retry(
                    MockEngineFixture.STEADY,
                ) { attempt -> client.post("http://host/") { header(MockEngineFixture.KEY, attempt.key()) } }
            }
            assertEquals(4, ground.sent.size)
            assertEquals(
                1,
                ground.sent
                    .map { it.headers[MockEngineFixture.KEY] }
                    .toSet()
                    .size,
            )
        }

    @Test
    fun `a block whose order was refused goes again`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { throw ConnectException("refused") }
            val left = assertFailsWith<ConnectException> { ground.comeback.retry(MockEngineFixture.STEADY) { client.post("http://host/") } }
            assertEquals(4, ground.sent.size)
            assertFalse(left.mayHaveArrived)
            assertEquals(1, ground.heard<RetryEvent.Finished>().size)
        }
}
