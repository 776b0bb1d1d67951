// What goes again through the plugin, when, and what reaches the caller; on a mocked engine in virtual time.
package dev.comeback.ktor

import dev.comeback.CancelKind
import dev.comeback.FailureKind
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import dev.comeback.WokenBy
import dev.comeback.ktor.MockEngineFixture.Companion.KEY
import dev.comeback.ktor.MockEngineFixture.Companion.STEADY
import dev.comeback.retryReport
import io.ktor.client.call.body
import io.ktor.client.engine.mock.respond
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.SendCountExceedException
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.get
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.client.request.prepareGet
import io.ktor.client.request.put
import io.ktor.client.request.request
import io.ktor.client.request.setBody
import io.ktor.client.request.takeFrom
import io.ktor.client.statement.HttpResponse
import io.ktor.client.statement.bodyAsText
import io.ktor.client.statement.request
import io.ktor.http.HttpHeaders
import io.ktor.http.HttpMethod
import io.ktor.http.HttpStatusCode
import io.ktor.http.content.ByteArrayContent
import io.ktor.http.content.OutgoingContent
import io.ktor.http.encodedPath
import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.ByteWriteChannel
import io.ktor.utils.io.writeFully
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runCurrent
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Test
import java.io.FileNotFoundException
import java.io.IOException
import java.net.ConnectException
import java.net.SocketTimeoutException
import java.nio.channels.UnresolvedAddressException
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds

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
    fun `an edge ends a wait at once`() =
        runTest {
            val ground = MockEngineFixture(this)
            val call = async { ground.client { number -> if (number == 1) status(503) else status(200) }.get("http://host/") }
            advanceTimeBy(300)
            ground.connectivity.available()
            call.await()
            assertEquals(listOf(0L, 300), ground.sentAt)
            assertEquals(WokenBy.EDGE, ground.heard<RetryEvent.Resumed>().single().by)
        }

    @Test
    fun `close ends a wait with what stands in for the closed response`() =
        runTest {
            val ground = MockEngineFixture(this)
            val call = async { runCatching { ground.client { status(503, "X-Why" to "busy") }.get("http://host/") } }
            advanceTimeBy(300)
            ground.comeback.close()
            val left = assertNotNull(call.await().exceptionOrNull() as? RetryStoppedException)
            assertEquals(503, left.status)
            assertTrue("X-Why" to "busy" in left.headers)
            assertEquals("cancelled(closed)", left.reason.toString())
            assertEquals(300, currentTime)
        }

    @Test
    fun `the client's own close ends a wait`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(503) }
            val call = async { runCatching { client.get("http://host/") } }
            advanceTimeBy(300)
            client.close()
            assertTrue(call.await().exceptionOrNull() is IOException)
            assertEquals(300, currentTime)
            assertEquals(1, ground.finished.size)
        }

    @Test
    fun `cancellation ends the call at once, in a wait and in an attempt`() =
        runTest {
            for (attempt in listOf(0L, 5_000L)) {
                val ground = MockEngineFixture(this)
                val client =
                    ground.client {
                        delay(attempt)
                        status(503)
                    }
                val call = launch { client.get("http://host/") }
                advanceTimeBy(500)
                call.cancel()
                runCurrent()
                assertTrue(call.isCompleted)
                assertEquals(1, ground.sent.size)
                assertEquals(
                    "cancelled(caller)",
                    ground.finished
                        .single()
                        .reason
                        .toString(),
                )
            }
        }

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
    fun `what a plugin further in writes into one attempt is not in the next`() =
        runTest {
            val ground = MockEngineFixture(this)
            val signing =
                createClientPlugin("Signing") {
                    on(Send) { request ->
                        request.headers.append("Signature", "one")
                        request.url.parameters.append("nonce", "two")
                        proceed(request)
                    }
                }
            val client = ground.client(after = { install(signing) }) { number -> status(if (number < 3) 503 else 200) }
            client.get("http://host/")
            assertEquals(List(3) { listOf("one") }, ground.sent.map { it.headers.getAll("Signature") })
            assertEquals(List(3) { "nonce=two" }, ground.sent.map { it.url.encodedQuery })
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
    fun `a request that takes another's choices keeps its own`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(503) }
            val template = HttpRequestBuilder().apply { makeIdempotencyKey() }
            client.post("http://host/") {
                retryPolicy(RetryPolicy.OFF)
                takeFrom(template)
            }
            assertEquals(1, ground.sent.size)
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

    @Test
    fun `the hook sees the attempt and its reason, and cannot touch method, body and key`() =
        runTest {
            val ground = MockEngineFixture(this)
            val seen = ArrayList<String>()
            val configure: ComebackRetryConfig.() -> Unit = {
                modifyRequest { request ->
                    seen += "$attempt $retryCount ${response?.status?.value} ${cause?.message}"
                    request.header("X-Attempt", attempt)
                    request.headers[KEY] = "another"
                    request.method = HttpMethod.Delete
                    request.setBody("other")
                }
            }
            val client =
                ground.client(configure = configure) { number ->
                    if (number ==
                        1
                    ) {
                        status(503)
                    } else if (number == 2) {
                        throw SocketTimeoutException("late")
                    } else {
                        status(200)
                    }
                }
            client.post("http://host/") {
                header(KEY, "mine")
                setBody("body")
            }
            assertEquals(listOf("2 1 503 null", "3 2 null late"), seen)
            assertEquals(listOf(null, "2", "3"), ground.sent.map { it.headers["X-Attempt"] })
            assertEquals(listOf<String?>("mine", "mine", "mine"), ground.sent.map { it.headers[KEY] })
            assertEquals(setOf(HttpMethod.Post), ground.sent.map { it.method }.toSet())
            assertEquals(setOf("body"), ground.sent.map { (it.body as OutgoingContent.ByteArrayContent).bytes().decodeToString() }.toSet())
        }

    @Test
    fun `hooks that throw change nothing`() =
        runTest {
            val ground = MockEngineFixture(this)
            val configure: ComebackRetryConfig.() -> Unit = {
                policyFor = { error("policy") }
                classify = { _, _, _ -> error("classify") }
                label = { error("label") }
                modifyRequest { error("modify") }
            }
            val client = ground.client(configure = configure) { number -> if (number == 1) status(503) else status(200) }
            client.monitor.subscribe(ComebackRetryEvent) { error("event") }
            assertEquals(200, client.get("http://host/").status.value)
        }

    @Test
    fun `the app's word on a class counts, and never lifts what may be repeated`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(configure = {
                    classify =
                        { _, response, _ -> if (response?.status?.value == 404) OutcomeClass.TRANSIENT_STATUS else null }
                }) { status(404) }
            client.get("http://host/")
            assertEquals(4, ground.sent.size)
            client.post("http://host/")
            assertEquals(5, ground.sent.size)
        }

    @Test
    fun `the client's monitor hears of each retry in Ktor's manner`() =
        runTest {
            val ground = MockEngineFixture(this)
            val heard = ArrayList<String>()
            val client =
                ground.client { number ->
                    if (number ==
                        1
                    ) {
                        status(503)
                    } else if (number == 2) {
                        throw SocketTimeoutException("late")
                    } else {
                        status(200)
                    }
                }
            client.monitor.subscribe(ComebackRetryEvent) { heard += "${it.retryCount} ${it.response?.status?.value} ${it.cause?.message}" }
            client.get("http://host/")
            assertEquals(listOf("1 503 null", "2 null late"), heard)
        }

    @Test
    fun `bytes go again, a channel and a writer do not unless they are vouched for`() =
        runTest {
            for ((content, isVouched, sends) in listOf(
                Triple(ByteArrayContent("x".encodeToByteArray()), false, 2),
                Triple(readable(), false, 1),
                Triple(readable(), true, 2),
                Triple(writable(), false, 1),
                Triple(writable(), true, 2),
            )) {
                val ground = MockEngineFixture(this)
                val client =
                    ground.client { number ->
                        ground.sent
                            .last()
                            .body
                            .handedOut()
                        if (number == 1) status(503) else status(200)
                    }
                client.put("http://host/") {
                    setBody(content)
                    if (isVouched) replayableBody()
                }
                assertEquals(sends, ground.sent.size, "$content $isVouched")
                if (sends == 1) assertEquals(StopReason.BodyNotReplayable, ground.finished.single().reason)
            }
        }

    @Test
    fun `a channel that nobody asked for goes again`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number == 1) throw ConnectException() else status(200) }
            assertEquals(200, client.post("http://host/") { setBody(readable()) }.status.value)
            assertEquals(2, ground.sent.size)
        }

    @Test
    fun `what a body throws while it is written is the app's own fault`() =
        runTest {
            val ground = MockEngineFixture(this)
            val failing =
                object : OutgoingContent.WriteChannelContent() {
                    override suspend fun writeTo(channel: ByteWriteChannel): Unit = throw IOException("of the body")
                }
            val client =
                ground.client {
                    (ground.sent.last().body as OutgoingContent.WriteChannelContent).writeTo(
                        io.ktor.utils.io
                            .ByteChannel(),
                    )
                    status(200)
                }
            assertFailsWith<IOException> {
                client.put("http://host/") {
                    setBody(failing)
                    replayableBody()
                }
            }
            assertEquals(1, ground.sent.size)
        }

    @Test
    fun `a streamed response that goes again is closed before the wait`() =
        runTest {
            val ground = MockEngineFixture(this)
            val bodies = ArrayList<io.ktor.utils.io.ByteChannel>()
            val calls = ArrayList<kotlinx.coroutines.Job>()
            val client =
                ground.client { number ->
                    calls += ground.sent.last().executionContext
                    if (number ==
                        1
                    ) {
                        respond(
                            io.ktor.utils.io
                                .ByteChannel()
                                .also { bodies += it },
                            HttpStatusCode.ServiceUnavailable,
                        )
                    } else {
                        status(200)
                    }
                }
            val call = async { client.prepareGet("http://host/").execute { it.status.value } }
            advanceTimeBy(500)
            assertEquals(1, ground.sent.size)
            assertTrue(calls.single().isCompleted)
            assertEquals(200, call.await())
        }

    @Test
    fun `a streamed body reaches the caller whole, however long after the head`() =
        runTest {
            val ground = MockEngineFixture(this)
            val body =
                io.ktor.utils.io
                    .ByteChannel(autoFlush = true)
            val client = ground.client(RetryPolicy.READ) { respond(body) }
            val text = async { client.prepareGet("http://host/").execute { it.bodyAsText() } }
            advanceTimeBy(60_000)
            body.writeFully("whole".encodeToByteArray())
            body.flushAndClose()
            assertEquals("whole", text.await())
        }

    @Test
    fun `an attempt given up in the moment its head comes leaves no half response`() =
        runTest {
            val ground = MockEngineFixture(this)
            ground.connectivity.available()
            val client =
                ground.client { number ->
                    delay(2_000)
                    if (number == 1) ground.connectivity.available(2)
                    respond(bodyOfThisCall(ground))
                }
            assertEquals("whole", client.prepareGet("http://host/").execute { it.bodyAsText() })
            assertEquals(listOf(0L, 2000), ground.sentAt)
            assertEquals(1, ground.heard<RetryEvent.AttemptAbandoned>().size)
        }

    /** As an engine has it: it comes later than its head, and ends with its call. */
    private fun TestScope.bodyOfThisCall(ground: MockEngineFixture): ByteReadChannel {
        val body =
            io.ktor.utils.io
                .ByteChannel(autoFlush = true)
        ground.sent
            .last()
            .executionContext
            .invokeOnCompletion { if (it != null) body.cancel(it) }
        launch {
            delay(100)
            if (!body.isClosedForWrite) {
                body.writeFully("whole".encodeToByteArray())
                body.flushAndClose()
            }
        }
        return body
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

    @Test
    fun `an attempt on a network that is gone is begun anew when the next one is there`() =
        runTest {
            val ground = MockEngineFixture(this)
            ground.connectivity.available()
            val client =
                ground.client { number ->
                    if (number == 1) delay(60_000)
                    status(200)
                }
            val call = async { client.get("http://host/") }
            advanceTimeBy(2_000)
            ground.connectivity.lost()
            advanceTimeBy(1_000)
            ground.connectivity.available()
            assertEquals(200, call.await().status.value)
            assertEquals(listOf(0L, 3000), ground.sentAt)
            assertEquals(1, ground.heard<RetryEvent.AttemptAbandoned>().size)
            assertEquals(1, call.await().retryReport?.abandoned)
        }

    @Test
    fun `a POST in flight, and a body on its way, are left alone on an edge`() =
        runTest {
            val ground = MockEngineFixture(this)
            ground.connectivity.available()
            val client =
                ground.client {
                    delay(5_000)
                    status(200)
                }
            val call = async { client.post("http://host/") { setBody("x") } }
            advanceTimeBy(2_000)
            ground.connectivity.lost()
            ground.connectivity.available()
            assertEquals(200, call.await().status.value)
            assertEquals(1, ground.sent.size)
        }

    @Test
    fun `a second edge within a second begins the attempt anew when that second is over`() =
        runTest {
            val ground = MockEngineFixture(this)
            ground.connectivity.available()
            val client =
                ground.client { number ->
                    if (number < 3) delay(60_000)
                    status(200)
                }
            val call = async { client.get("http://host/") }
            advanceTimeBy(2_000)
            ground.connectivity.available(2)
            advanceTimeBy(300)
            ground.connectivity.available(3)
            call.await()
            assertEquals(listOf(0L, 2000, 3000), ground.sentAt)
        }

    @Test
    fun `nothing is left of a call that is over`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number == 1) status(503) else status(200) }
            client.get("http://host/")
            runCurrent()
            assertEquals(
                0,
                client.coroutineContext.job.children
                    .count { it.isActive },
            )
            assertFalse(ground.sent.any { it.executionContext.isActive })
        }

    @Test
    fun `a Comeback that is closed lets requests pass`() =
        runTest {
            val ground = MockEngineFixture(this)
            ground.comeback.close()
            assertEquals(
                503,
                ground
                    .client { status(503) }
                    .get("http://host/")
                    .status.value,
            )
            assertEquals(1, ground.sent.size)
        }

    private fun readable() =
        object : OutgoingContent.ReadChannelContent() {
            override fun readFrom() = ByteReadChannel("x")
        }

    private fun writable() =
        object : OutgoingContent.WriteChannelContent() {
            override suspend fun writeTo(channel: ByteWriteChannel) = channel.writeFully("x".encodeToByteArray())
        }

    private suspend fun OutgoingContent.handedOut() {
        when (this) {
            is OutgoingContent.ReadChannelContent -> {
                readFrom()
            }

            is OutgoingContent.WriteChannelContent -> {
                writeTo(
                    io.ktor.utils.io
                        .ByteChannel(),
                )
            }

            else -> {
                Unit
            }
        }
    }
}
