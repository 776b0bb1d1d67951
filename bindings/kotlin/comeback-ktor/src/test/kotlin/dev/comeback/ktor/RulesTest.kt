// What goes again through the plugin, when, and what reaches the caller; on a mocked engine in virtual time.
package dev.comeback.ktor

import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.ktor.MockEngineFixture.Companion.KEY
import dev.comeback.ktor.MockEngineFixture.Companion.STEADY
import dev.comeback.retryReport
import io.ktor.client.engine.mock.respond
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.SendCountExceedException
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.get
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.client.request.put
import io.ktor.client.request.request
import io.ktor.client.request.takeFrom
import io.ktor.client.statement.bodyAsText
import io.ktor.client.statement.request
import io.ktor.http.HttpHeaders
import io.ktor.http.HttpStatusCode
import io.ktor.http.encodedPath
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import java.io.FileNotFoundException
import java.io.IOException
import java.net.ConnectException
import java.net.SocketTimeoutException
import java.nio.channels.UnresolvedAddressException
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

@OptIn(ExperimentalCoroutinesApi::class)
class RulesTest {
    @Test
    fun `a request goes again after the waits of its policy, and the report is on the response`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number < 4) status(503) else status(200) }
            val response = client.get("http://host/")
            assertEquals(200, response.status.value)
            assertEquals(listOf(0L, 1000, 3000, 7000), ground.sentAt)
            assertEquals(listOf(503, 503, 503), assertNotNull(response.retryReport).attempts.map { it.status })
        }

    @Test
    fun `an answer at once has no report and one event`() =
        runTest {
            val ground = MockEngineFixture(this)
            assertNull(ground.client { status(204) }.get("http://host/").retryReport)
            assertEquals(1, ground.events.size)
            assertEquals(null, ground.finished.single().reason)
        }

    @Test
    fun `when the attempts are used up the last response is the answer`() =
        runTest {
            val ground = MockEngineFixture(this)
            val response = ground.client { number -> respond("attempt $number", HttpStatusCode.ServiceUnavailable) }.get("http://host/")
            assertEquals("attempt 4", response.bodyAsText())
            assertEquals(StopReason.Attempts, response.retryReport?.reason)
        }

    @Test
    fun `when the attempts are used up the last exception leaves as it is, with the report`() =
        runTest {
            val ground = MockEngineFixture(this)
            val thrown = ArrayList<IOException>()
            val client = ground.client { throw SocketTimeoutException("${thrown.size}").also { thrown += it } }
            val left = assertFailsWith<SocketTimeoutException> { client.get("http://host/") }
            assertEquals("3", left.message)
            assertEquals(StopReason.Attempts, left.retryReport?.reason)
            assertEquals(4, thrown.size)
        }

    @Test
    fun `a POST is sent once unless it has a key, or nothing of it was sent`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number == 2) throw ConnectException() else status(503) }
            assertEquals(StopReason.NotRepeatable, client.post("http://host/").retryReport?.reason)
            assertEquals(1, ground.sent.size)
            assertEquals(503, client.post("http://host/").status.value)
            assertEquals(3, ground.sent.size)
            client.post("http://host/") { header(KEY, "mine") }
            assertEquals(7, ground.sent.size)
        }

    @Test
    fun `a made key is the same on all attempts, another for each call, and never overwrites the caller's`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number % 2 == 1) status(503) else status(200) }
            repeat(2) { client.post("http://host/") { makeIdempotencyKey() } }
            client.post("http://host/") {
                makeIdempotencyKey()
                header(KEY, "mine")
            }
            val keys = ground.sent.map { it.headers[KEY] }
            assertEquals(3, keys.toSet().size)
            assertEquals(keys[0], keys[1])
            assertEquals(keys[2], keys[3])
            assertEquals(listOf<String?>("mine", "mine"), keys.drop(4))
        }

    @Test
    fun `a policy that makes keys writes them in its header and form`() =
        runTest {
            val ground = MockEngineFixture(this)
            val making =
                RetryPolicy(STEADY) {
                    makeKey = true
                    keyHeader = "X-Key"
                    keyForm = dev.comeback.KeyForm.QUOTED
                }
            val client = ground.client(making) { number -> if (number == 1) status(503) else status(200) }
            client.post("http://host/")
            assertEquals(2, ground.sent.size)
            assertTrue(ground.sent[0].headers["X-Key"]!!.matches(Regex("\"[0-9a-f-]{36}\"")))
            assertEquals(ground.sent[0].headers["X-Key"], ground.sent[1].headers["X-Key"])
        }

    @Test
    fun `a conditional PUT is not repeated in doubt`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(503) }
            client.put("http://host/") { header(HttpHeaders.IfMatch, "\"v1\"") }
            assertEquals(1, ground.sent.size)
        }

    @Test
    fun `a request's own policy comes before the hook's, and the hook's before the client's`() =
        runTest {
            val ground = MockEngineFixture(this)
            val twice = RetryPolicy(STEADY) { maxAttempts = 2 }
            val client = ground.client(configure = { policyFor = { if (it.url.encodedPath == "/twice") twice else null } }) { status(503) }
            client.get("http://host/twice")
            assertEquals(2, ground.sent.size)
            client.get("http://host/twice") { retryPolicy(RetryPolicy.OFF) }
            assertEquals(3, ground.sent.size)
            client.get("http://host/")
            assertEquals(7, ground.sent.size)
        }

    @Test
    fun `Retry-After holds, as seconds and as a date measured against the response's own clock`() =
        runTest {
            for (headers in listOf(
                arrayOf("Retry-After" to "5"),
                arrayOf("Retry-After" to "Sun, 06 Nov 1994 08:49:42 GMT", "Date" to "Sun, 06 Nov 1994 08:49:37 GMT"),
            )) {
                val ground = MockEngineFixture(this)
                val start = currentTime
                ground.client { number -> if (number == 1) status(503, *headers) else status(200) }.get("http://host/")
                assertEquals(6000, currentTime - start)
            }
        }

    @Test
    fun `a server that asks for a day is believed, and the answer comes at once`() =
        runTest {
            val ground = MockEngineFixture(this)
            val response = ground.client { status(503, "Retry-After" to "86400") }.get("http://host/")
            assertEquals(StopReason.ServerWaitTooLong(86_400_000), response.retryReport?.reason)
            assertEquals(0, currentTime)
        }

    @Test
    fun `a listed 409 goes again with a key only, and a cache's own 504 never`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(RetryPolicy(STEADY) { retryStatuses = setOf(409, 504) }) { number ->
                    status(
                        if (number <
                            6
                        ) {
                            409
                        } else {
                            504
                        },
                    )
                }
            client.post("http://host/")
            assertEquals(1, ground.sent.size)
            client.post("http://host/") { makeIdempotencyKey() }
            assertEquals(5, ground.sent.size)
            client.get("http://host/") { header(HttpHeaders.CacheControl, "max-age=1, only-if-cached") }
            assertEquals(7, ground.sent.size + if (ground.sent.size == 6) 1 else 0)
        }

    @Test
    fun `redirects belong to the call they came in and start no cap anew`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client { number ->
                    when (number) {
                        1, 3 -> status(503)
                        2 -> status(302, "Location" to "http://other/")
                        else -> status(503)
                    }
                }
            val response = client.get("http://host/") { makeIdempotencyKey() }
            assertEquals(listOf("host", "host", "other", "other", "other"), ground.sent.map { it.url.host })
            assertEquals(
                1,
                ground.sent
                    .map { it.headers[KEY] }
                    .toSet()
                    .size,
            )
            assertEquals(StopReason.Attempts, response.retryReport?.reason)
            assertEquals(4, ground.finished.single().counted)
            assertEquals(listOf(0L, 1000, 1000, 3000, 7000), ground.sentAt)
        }

    @Test
    fun `a redirect that nobody follows ends the call`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(302, "Location" to "http://other/") }
            assertEquals(302, client.post("http://host/").status.value)
            assertEquals(null, ground.finished.single().reason)
        }

    @Test
    fun `a call goes the same way if nobody listens`() =
        runTest {
            val ground = MockEngineFixture(this, isHeard = false)
            val client =
                ground.client { number ->
                    when (number) {
                        1 -> status(302, "Location" to "http://other/")
                        2 -> status(503)
                        else -> status(200)
                    }
                }
            val report = assertNotNull(client.get("http://host/").retryReport)
            assertEquals(listOf(0L, 0L, 1000L), ground.sentAt)
            assertEquals(listOf(503), report.attempts.map { it.status })
            assertNull(client.get("http://host/").retryReport)
        }

    @Test
    fun `a request made from one that was sent has a report of its own`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> status(if (number == 1) 503 else 200) }
            val first = client.get("http://host/")
            assertNotNull(first.retryReport)
            assertNull(client.request(HttpRequestBuilder().takeFrom(first.request)).retryReport)
        }

    @Test
    fun `max_attempts not below maxSendCount is refused at install with the reason`() =
        runTest {
            val ground = MockEngineFixture(this)
            val refused = assertFailsWith<IllegalArgumentException> { ground.client(RetryPolicy { maxAttempts = 20 }) { status(200) } }
            assertTrue("max_attempts = 20" in refused.message!! && "maxSendCount" in refused.message!!)
            ground.client(RetryPolicy { maxAttempts = 20 }, configure = { maxSendCount = 40 }) { status(200) }
        }

    @Test
    fun `the client's cap on sends is never tried again`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client(after = { install(HttpSend) { maxSendCount = 2 } }) { status(503) }
            assertFailsWith<SendCountExceedException> { client.get("http://host/") }
            assertEquals(2, ground.sent.size)
            assertEquals(StopReason.Permanent, ground.finished.single().reason)
        }

    @Test
    fun `the engine's unresolved address is never sent and goes again, a local file's error does not`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client { number ->
                    when (number) {
                        1 -> throw UnresolvedAddressException()
                        2 -> status(200)
                        else -> throw FileNotFoundException("cache")
                    }
                }
            assertEquals(200, client.post("http://host/").status.value)
            assertEquals(OutcomeClass.NEVER_SENT, ground.heard<RetryEvent.AttemptFailed>().single().outcome)
            assertFailsWith<FileNotFoundException> { client.get("http://host/") }
            assertEquals(3, ground.sent.size)
        }
}
