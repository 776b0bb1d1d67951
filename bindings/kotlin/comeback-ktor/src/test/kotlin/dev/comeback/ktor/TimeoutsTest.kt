// Time limits: of an attempt, of the whole call, Ktor's own, and those around the call; on a mocked engine in virtual time.
package dev.comeback.ktor

import dev.comeback.CancelKind
import dev.comeback.FailureKind
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.ktor.MockEngineFixture.Companion.STEADY
import dev.comeback.retryReport
import io.ktor.client.engine.mock.respond
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.request.get
import io.ktor.client.request.request
import io.ktor.client.statement.bodyAsText
import io.ktor.client.statement.request
import io.ktor.utils.io.ByteReadChannel
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds

@OptIn(ExperimentalCoroutinesApi::class)
class TimeoutsTest {
    @Test
    fun `a limit around the call is the caller's, not an attempt's`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client {
                    delay(5_000)
                    status(200)
                }
            assertFailsWith<CancellationException> { withTimeout(500) { client.get("http://host/") } }
            assertEquals(1, ground.sent.size)
            assertEquals(
                "cancelled(call_timeout)",
                ground.finished
                    .single()
                    .reason
                    .toString(),
            )
        }

    @Test
    fun `HttpTimeout installed after Comeback limits each attempt, which goes again`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(after = { install(HttpTimeout) { requestTimeoutMillis = 500 } }) { number ->
                    if (number < 3) delay(5_000)
                    status(200)
                }
            assertEquals(200, client.get("http://host/").status.value)
            assertEquals(listOf(0L, 1500, 4000), ground.sentAt)
            assertEquals(
                setOf<FailureKind?>(FailureKind.ATTEMPT_TIMEOUT),
                ground.heard<RetryEvent.AttemptFailed>().map { it.failure }.toSet(),
            )
        }

    @Test
    fun `HttpTimeout installed before Comeback limits the whole call, in an attempt and in a wait`() =
        runTest {
            for (attempt in listOf(10_000L, 0L)) {
                val ground = MockEngineFixture(this)
                val start = currentTime
                val client =
                    ground.client(before = { install(HttpTimeout) { requestTimeoutMillis = 2500 } }) {
                        delay(attempt)
                        status(503, "Retry-After" to "1")
                    }
                val answer = runCatching { client.get("http://host/") }
                if (attempt > 0) {
                    assertTrue(answer.exceptionOrNull() is HttpRequestTimeoutException, "$answer")
                    assertEquals(1, ground.sent.size)
                    assertEquals(2500, currentTime - start)
                    assertEquals(
                        "cancelled(call_timeout)",
                        ground.finished
                            .single()
                            .reason
                            .toString(),
                    )
                } else {
                    // No attempt is begun that the timeout would cut off.
                    assertEquals(503, answer.getOrThrow().status.value)
                    assertEquals(listOf(0L, 2000), ground.sentAt.map { it - start })
                }
            }
        }

    @Test
    fun `a timeout outside that comes in a wait ends it`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(before = { install(HttpTimeout) }) { status(503) }
            val call =
                async {
                    runCatching {
                        client.get("http://host/") {
                            executionContext.let { job ->
                                launch {
                                    delay(300)
                                    job.cancel(CancellationException("outside", HttpRequestTimeoutException("url", 300)))
                                }
                            }
                        }
                    }
                }
            assertTrue(call.await().exceptionOrNull() is HttpRequestTimeoutException)
            assertEquals(300, currentTime)
            assertEquals(
                "cancelled(call_timeout)",
                ground.finished
                    .single()
                    .reason
                    .toString(),
            )
        }

    @Test
    fun `attempt_timeout ends an attempt and no body`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(RetryPolicy(STEADY) { attemptTimeout = 1.seconds }) { number ->
                    if (number == 1) delay(5_000)
                    respond(ByteReadChannel("slow").also { delay(if (number == 2) 900 else 0) })
                }
            assertEquals("slow", client.get("http://host/").bodyAsText())
            assertEquals(listOf(0L, 2000), ground.sentAt)
        }

    @Test
    fun `an attempt that reaches its limit for the last time leaves as Ktor's own timeout`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(RetryPolicy.READ) {
                    delay(60_000)
                    status(200)
                }
            val left = assertFailsWith<HttpRequestTimeoutException> { client.get("http://host/") }
            assertEquals(20_000, currentTime)
            assertEquals(StopReason.Elapsed, left.retryReport?.reason)
        }

    @Test
    fun `a request that a plugin further out sends again has no more time than the call had`() =
        runTest {
            val ground = MockEngineFixture(this)
            val signingAnew =
                createClientPlugin("SigningAnew") {
                    on(Send) { request ->
                        val refused = proceed(request)
                        if (refused.response.status.value == 401) proceed(request) else refused
                    }
                }
            val policy = RetryPolicy(STEADY) { maxElapsed = 3.5.seconds }
            // Two waits, 1 and 2 s, are over when the server wants another signature; the next wait of 1 s would not end in time.
            val client = ground.client(policy, before = { install(signingAnew) }) { number -> status(if (number == 3) 401 else 503) }
            assertEquals(503, client.get("http://host/").status.value)
            assertEquals(listOf(0L, 1000L, 3000L, 3000L), ground.sentAt)
            assertEquals(StopReason.Elapsed, ground.finished.last().reason)
        }

    @Test
    fun `attempt_timeout of a request that a plugin further out sends again is that attempt's alone`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(
                    RetryPolicy(STEADY) { attemptTimeout = 2.seconds },
                    before = { install(sendingAgainAt(401)) },
                    after = { install(sendingAgainAt(407)) },
                ) { number ->
                    delay(900)
                    status(listOf(401, 407, 200)[number - 1])
                }
            assertEquals(200, client.get("http://host/").status.value)
            assertEquals(listOf(0L, 900, 1800), ground.sentAt)
        }

    private fun sendingAgainAt(status: Int) =
        createClientPlugin("SendingAgainAt$status") {
            on(Send) { request -> proceed(request).let { if (it.response.status.value == status) proceed(request) else it } }
        }

    @Test
    fun `attempt_timeout spans all that a plugin further in sends for one attempt`() =
        runTest {
            val ground = MockEngineFixture(this)
            val signsIn =
                createClientPlugin("SignsIn") {
                    on(Send) { request -> proceed(request).let { if (it.response.status.value == 401) proceed(request) else it } }
                }
            val policy = RetryPolicy.builder(STEADY).apply { attemptTimeout = 2.seconds }.build()
            val client =
                ground.client(policy, after = { install(signsIn) }) { number ->
                    delay(1_500)
                    status(if (number == 1) 401 else 200)
                }
            assertEquals(200, client.get("http://host/").status.value)
            assertEquals(listOf(0L, 1500, 3000), ground.sentAt)
            assertEquals(FailureKind.ATTEMPT_TIMEOUT, ground.heard<RetryEvent.AttemptFailed>().single().failure)
        }

    @Test
    fun `the report is on a timeout outside that comes in a later attempt`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(before = { install(HttpTimeout) { requestTimeoutMillis = 3_000 } }) { number ->
                    if (number > 1) delay(60_000)
                    status(503)
                }
            val left = assertFailsWith<HttpRequestTimeoutException> { client.get("http://host/") }
            assertEquals(StopReason.Cancelled(CancelKind.CALL_TIMEOUT), left.retryReport?.reason)
        }
}
