// What a call brings: a response, whole, or an exception that says why not.
package dev.comeback.client

import dev.comeback.CancelKind
import dev.comeback.FailureKind
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import okhttp3.tls.HandshakeCertificates
import okhttp3.tls.HeldCertificate
import org.junit.jupiter.api.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

class RequestTest {
    @Test
    fun `a response comes with status, headers and body, and without a report`() =
        Server { _, exchange -> exchange.answer(200, "grüß", "x-one: 1\r\n") }.use { server ->
            ClientFixture().use { ground ->
                val response = soon { ground.client.get(server.url) { header("Accept", "text/plain") } }
                assertEquals(200, response.status)
                assertEquals("1", response.header("X-One"))
                assertEquals("grüß", response.text())
                assertTrue(response.isSuccessful)
                assertNull(response.report)
                assertTrue(server.next().headers.any { it.equals("accept: text/plain", ignoreCase = true) })
            }
        }

    @Test
    fun `a request's body arrives byte for byte, and again on the next attempt`() =
        Server { attempt, exchange -> exchange.answer(if (attempt == 1) 503 else 200) }.use { server ->
            ClientFixture().use { ground ->
                soon { ground.client.put(server.url) { body("a b c") } }
                assertEquals(listOf("a b c", "a b c"), listOf(server.next().body, server.next().body))
            }
        }

    @Test
    fun `a body of megabytes comes whole`() {
        val body = ByteArray(5_000_000) { (it % 251).toByte() }
        Server { _, exchange ->
            exchange.write("HTTP/1.1 200 .\r\ncontent-length: ${body.size}\r\n\r\n")
            exchange.output.write(body)
            exchange.output.flush()
        }.use { server ->
            ClientFixture().use { ground -> assertContentEquals(body, soon { ground.client.get(server.url) }.body) }
        }
    }

    @Test
    fun `a failed attempt goes again, the response says so, and the listener hears it in order`() =
        Server { attempt, exchange -> exchange.answer(if (attempt == 1) 503 else 200) }.use { server ->
            ClientFixture().use { ground ->
                val response = soon { ground.client.get(server.url) { label = "orders" } }
                assertEquals(200, response.status)
                val report = checkNotNull(response.report)
                assertEquals(listOf(503), report.attempts.map { it.status })
                assertEquals(2, report.counted)
                assertEquals(
                    listOf(
                        RetryEvent.AttemptFailed::class,
                        RetryEvent.WaitPlanned::class,
                        RetryEvent.Resumed::class,
                        RetryEvent.Finished::class,
                    ),
                    ground.events.map { it::class },
                )
                assertEquals(setOf("orders"), ground.events.map { it.label }.toSet())
                assertEquals(
                    1,
                    ground.events
                        .map { it.callId }
                        .toSet()
                        .size,
                )
            }
        }

    @Test
    fun `a POST without a key is sent once, and its answer is the answer`() =
        Server { _, exchange -> exchange.answer(503) }.use { server ->
            ClientFixture().use { ground ->
                val response = soon { ground.client.post(server.url) { body("x") } }
                assertEquals(503, response.status)
                assertEquals(StopReason.NotRepeatable, response.report?.reason)
                assertEquals(1, server.count)
            }
        }

    @Test
    fun `a made key is the same on every attempt`() =
        Server { attempt, exchange -> exchange.answer(if (attempt < 3) 503 else 200) }.use { server ->
            ClientFixture().use { ground ->
                soon { ground.client.post(server.url) { makeKey = true } }
                val keys = List(3) { server.next().headers.single { it.startsWith("idempotency-key:", ignoreCase = true) } }
                assertEquals(1, keys.toSet().size)
            }
        }

    @Test
    fun `nobody listens - an IOException with kind, reason and report, and without the URL`() {
        val port = closedPort()
        ClientFixture().use { ground ->
            val thrown = assertFailsWith<ClientException.Failed> { soon { ground.client.get("http://127.0.0.1:$port/secret?token=1") } }
            assertEquals(FailureKind.CONNECT_REFUSED, thrown.failure)
            assertEquals(StopReason.Attempts, thrown.reason)
            assertEquals(4, thrown.report?.counted)
            assertEquals(
                OutcomeClass.NEVER_SENT,
                thrown.report
                    ?.attempts
                    ?.first()
                    ?.outcome,
            )
            assertEquals(thrown.report.toString(), thrown.retryReport.toString())
            assertFalse("secret" in thrown.message.orEmpty() || "token" in thrown.message.orEmpty(), thrown.message)
        }
    }

    @Test
    fun `a policy may be chosen by the request, and a request's own comes before it`() =
        Server { _, exchange -> exchange.answer(503) }.use { server ->
            val chosen = RetryPolicy(QUICK) { maxAttempts = 2 }
            val choose = { request: ClientRequest -> if (request.label == "patient") chosen else null }
            ClientFixture(RetryPolicy.OFF, { policyFor = choose }).use { ground ->
                val sends =
                    listOf<ClientRequest.Builder.() -> Unit>(
                        { },
                        { label = "patient" },
                        {
                            label = "patient"
                            policy = RetryPolicy(QUICK) { maxAttempts = 3 }
                        },
                    ).map { request ->
                        val before = server.count
                        soon { ground.client.get(server.url, request) }
                        server.count - before
                    }
                assertEquals(listOf(1, 2, 3), sends)
            }
        }

    @Test
    fun `a choice that throws is none`() =
        Server { _, exchange -> exchange.answer(503) }.use { server ->
            ClientFixture(RetryPolicy(QUICK) { maxAttempts = 2 }, { policyFor = { error("undecided") } }).use { ground ->
                assertEquals(503, soon { ground.client.get(server.url) }.status)
                assertEquals(2, server.count)
            }
        }

    @Test
    fun `what the client was built with and cannot use is told by every call and by the self-check`() {
        ClientFixture { userAgent = "two\nlines" }.use { ground ->
            assertFailsWith<ClientException.InvalidSettings> { soon { ground.client.get("http://127.0.0.1/") } }
            assertFailsWith<ClientException.InvalidSettings> { soon { ground.client.selfCheck() } }
            assertEquals(emptyList(), ground.events.toList())
        }
    }

    @Test
    fun `where the library can be used the self-check passes`() = ClientFixture().use { ground -> soon { ground.client.selfCheck() } }

    @Test
    fun `policy off - a request goes once`() =
        Server { _, exchange -> exchange.answer(503) }.use { server ->
            ClientFixture().use { ground ->
                assertEquals(503, soon { ground.client.get(server.url) { policy = RetryPolicy.OFF } }.status)
                assertEquals(1, server.count)
            }
        }

    @Test
    fun `a response that breaks off is tried again`() =
        Server { attempt, exchange ->
            if (attempt == 1) {
                exchange.write("HTTP/1.1 200 .\r\ncontent-length: 10\r\n\r\nhalf")
                exchange.reset()
            } else {
                exchange.answer(200, "0123456789")
            }
        }.use { server ->
            ClientFixture().use { ground -> assertEquals("0123456789", soon { ground.client.get(server.url) }.text()) }
        }

    @Test
    fun `a request that is not one is refused, and nothing goes out`() =
        Server { _, exchange -> exchange.answer(200) }.use { server ->
            ClientFixture().use { ground ->
                assertFailsWith<ClientException.InvalidRequest> { soon { ground.client.get("no url") } }
                assertFailsWith<ClientException.InvalidRequest> { soon { ground.client.get(server.url) { header("a b", "c") } } }
                assertFailsWith<ClientException.InvalidRequest> { soon { ground.client.get(server.url) { header("a", "b\r\nc: d") } } }
                assertFailsWith<ClientException.InvalidRequest> { soon { ground.client.execute(ClientRequest("G T", server.url)) } }
                assertEquals(0, server.count)
            }
        }

    @Test
    fun `the call's own timeout ends it, and the reason says so`() =
        Server { _, exchange -> exchange.hang() }.use { server ->
            ClientFixture().use { ground ->
                val thrown = assertFailsWith<ClientException> { soon { ground.client.get(server.url) { timeout = 300.milliseconds } } }
                assertEquals(StopReason.Cancelled(CancelKind.CALL_TIMEOUT), thrown.reason)
            }
        }

    @Test
    fun `the network's return ends a wait`() =
        Server { attempt, exchange -> exchange.answer(if (attempt == 1) 503 else 200) }.use { server ->
            ClientFixture(SLOW).use { ground ->
                val began = System.nanoTime()
                soon {
                    val call = async(Dispatchers.Default) { ground.client.get(server.url) }
                    eventually("a wait") { ground.events.any { it is RetryEvent.WaitPlanned } }
                    ground.link.restored()
                    assertEquals(200, call.await().status)
                }
                assertTrue(System.nanoTime() - began < 5_000_000_000)
            }
        }

    @Test
    fun `what was known of the network before the client was made is known to it`() {
        val port = closedPort()
        ClientFixture(RetryPolicy(QUICK) { offline = dev.comeback.Offline.FAIL_FAST }).use { ground ->
            ground.link.noneAtStart()
            ComebackClient(ground.comeback) { policy = RetryPolicy { offline = dev.comeback.Offline.FAIL_FAST } }.use { client ->
                val thrown = assertFailsWith<ClientException.Failed> { soon { client.get("http://127.0.0.1:$port/") } }
                assertEquals(StopReason.Offline, thrown.reason)
            }
        }
    }

    @Test
    fun `closing the Comeback ends waits, and later calls go once`() =
        Server { _, exchange -> exchange.answer(503) }.use { server ->
            ClientFixture(SLOW).use { ground ->
                soon {
                    val call = async(Dispatchers.Default) { runCatching { ground.client.get(server.url) } }
                    eventually("a wait") { ground.events.any { it is RetryEvent.WaitPlanned } }
                    ground.comeback.close()
                    val thrown = assertIs<ClientException.Closed>(call.await().exceptionOrNull())
                    assertEquals(StopReason.Cancelled(CancelKind.CLOSED), thrown.reason)
                    assertEquals(503, ground.client.get(server.url).status)
                }
                assertEquals(2, server.count)
            }
        }

    @Test
    fun `a wait that does not fit the call's timeout is not begun, and the last response is the answer`() =
        Server { _, exchange -> exchange.answer(503) }.use { server ->
            ClientFixture(SLOW).use { ground ->
                val response = soon { ground.client.get(server.url) { timeout = 500.milliseconds } }
                assertEquals(503, response.status)
                assertEquals(StopReason.Elapsed, response.report?.reason)
            }
        }

    @Test
    fun `an authority that is trusted is accepted, any other fails for good after one handshake`() {
        val own = HeldCertificate.Builder().addSubjectAlternativeName("127.0.0.1").build()
        val tls = HandshakeCertificates.Builder().heldCertificate(own).build()
        Server(tls.sslContext().serverSocketFactory) { _, exchange -> exchange.answer(200, "sealed") }.use { server ->
            val url = "https://127.0.0.1:${server.port}/"
            ClientFixture { trust(own.certificate) }.use { ground -> assertEquals("sealed", soon { ground.client.get(url) }.text()) }
            ClientFixture().use { ground ->
                val thrown = assertFailsWith<ClientException.Failed> { soon { ground.client.get(url) } }
                assertEquals(FailureKind.CERTIFICATE, thrown.failure)
                assertEquals(1, thrown.report?.attempts?.size)
            }
        }
    }
}
