// What counts as proof that a request was never sent, and what does not.
package dev.comeback.okhttp

import dev.comeback.FailureKind
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.RequestBody
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import okio.BufferedSink
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.net.ConnectException
import java.net.ServerSocket
import java.net.SocketException
import java.net.UnknownHostException
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs

@ParameterizedClass
@EnumSource(Driver::class)
internal class ProofTest(
    private val driver: Driver,
) {
    private fun LoopbackFixture.failures() = heard<RetryEvent.AttemptFailed>().map { it.failure }

    private fun LoopbackFixture.answerAndClose() = server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())

    @Test
    fun `an inner interceptor that answers by another client and fails proves nothing`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.answerAndClose()
            val other = ground.remember(OkHttpClient())
            val client = ground.calls { addInterceptor { other.newCall(it.request()).execute() } }
            val failure = assertFailsWith<IOException> { client.send(ground.post()) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `an inner interceptor that falls back to another client which fails proves nothing either`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.answerAndClose()
            val other = ground.remember(OkHttpClient())
            val client =
                ground.calls {
                    dns(SecondLookUp())
                    addInterceptor { chain ->
                        try {
                            chain.proceed(ground.post(host = "one.test"))
                        } catch (_: UnknownHostException) {
                            other.newCall(chain.request()).execute()
                        }
                    }
                }
            val failure = assertFailsWith<IOException> { client.send(ground.post()) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `an inner interceptor that throws an unnamed I O error proves nothing, but a GET may go again`() =
        LoopbackFixture(driver = driver).use { ground ->
            val tries = AtomicInteger()
            val client =
                ground.calls {
                    addInterceptor {
                        if (tries.incrementAndGet() <
                            3
                        ) {
                            throw IOException()
                        } else {
                            it.proceed(it.request())
                        }
                    }
                }
            assertIs<IOException>(client.outcomeOf(ground.post()))
            assertEquals(1, tries.getAndSet(0))
            assertEquals(200, client.outcomeOf(ground.request()))
            assertEquals(3, tries.get())
        }

    @Test
    fun `a network interceptor that fails before the headers is proof if only this client sends, whatever it throws`() =
        LoopbackFixture(driver = driver).use { ground ->
            val tries = AtomicInteger()
            val client =
                ground.calls(configure = { onlyThisClientSends = true }) {
                    addNetworkInterceptor {
                        if (tries.incrementAndGet() ==
                            1
                        ) {
                            throw IOException()
                        } else {
                            it.proceed(it.request())
                        }
                    }
                }
            assertEquals(200, client.outcomeOf(ground.post()))
            assertEquals(listOf<FailureKind?>(FailureKind.BEFORE_HEADERS), ground.failures())
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a network interceptor that sent the request by another client which then fails proves nothing`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.answerAndClose()
            val other = ground.remember(OkHttpClient())
            val client =
                ground.calls(RetryPolicy.PAYMENT) {
                    addNetworkInterceptor { chain ->
                        other.newCall(ground.post()).execute().close()
                        chain.proceed(chain.request())
                    }
                }
            val failure = assertFailsWith<IOException> { client.send(ground.post()) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            assertEquals(true, failure.retryReport!!.mayHaveArrived)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `what failed before it reached the app's network interceptors goes again`() =
        LoopbackFixture(driver = driver).use { ground ->
            val client =
                ground.calls {
                    dns(SecondLookUp())
                    addNetworkInterceptor { it.proceed(it.request()) }
                }
            assertEquals(200, client.outcomeOf(ground.post(host = "one.test")))
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a failed look-up lets a POST go again`() =
        LoopbackFixture(driver = driver).use { ground ->
            assertEquals(200, ground.calls { dns(SecondLookUp()) }.outcomeOf(ground.post(host = "one.test")))
            assertEquals(listOf<FailureKind?>(FailureKind.DNS), ground.failures())
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a refused connection after a followed redirect is no proof any more`() =
        LoopbackFixture(driver = driver).use { ground ->
            val closedPort = ServerSocket(0, 1, LOOPBACK).use { it.localPort }
            ground.server.enqueue(status(307, "Location" to "http://127.0.0.1:$closedPort/"))
            val failure = assertFailsWith<ConnectException> { ground.calls().send(ground.post()) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `an authenticator whose own request is refused is no proof for the one it works for`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(401))
            val client = ground.calls { authenticator { _, _ -> throw ConnectException("the token server is down") } }
            assertIs<ConnectException>(client.outcomeOf(ground.post()))
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a refused connection after the client's own re-send of a lost one is no proof`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse())
            val client = ground.calls()
            client.send(ground.request()).close()
            // The pooled connection dies, and the port is closed: the client re-sends and is refused.
            ground.server.close()
            val failure = assertFailsWith<IOException> { client.send(ground.post()) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
        }

    @Test
    fun `a GET goes again, never sent or in doubt`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.answerAndClose()
            assertEquals(200, ground.calls { dns(SecondLookUp()) }.outcomeOf(ground.request(host = "one.test")))
            assertEquals(listOf<FailureKind?>(FailureKind.DNS, FailureKind.UNEXPECTED_END), ground.failures())
        }

    @Test
    fun `what the request's body itself throws is permanent`() =
        LoopbackFixture(driver = driver).use { ground ->
            val broken =
                object : RequestBody() {
                    override fun contentType(): MediaType? = null

                    override fun writeTo(sink: BufferedSink) {
                        sink.writeUtf8("a beginning").flush()
                        throw SocketException("says the body, not the socket")
                    }
                }
            val failure = assertFailsWith<SocketException> { ground.calls().send(ground.request("PUT", broken)) }
            assertEquals(StopReason.Permanent, failure.retryReport!!.reason)
            assertEquals(listOf<FailureKind?>(FailureKind.REQUEST_BODY), ground.failures())
        }

    @Test
    fun `a body that is shorter than it said is permanent`() =
        LoopbackFixture(driver = driver).use { ground ->
            val short =
                object : RequestBody() {
                    override fun contentType(): MediaType? = null

                    override fun contentLength(): Long = 100

                    override fun writeTo(sink: BufferedSink) {
                        sink.writeUtf8("short")
                    }
                }
            assertIs<IOException>(ground.calls().outcomeOf(ground.request("PUT", short)))
            assertEquals(listOf<FailureKind?>(FailureKind.REQUEST_BODY), ground.failures())
        }

    @Test
    fun `a response that breaks off under an interceptor that reads it is in doubt`() =
        LoopbackFixture(driver = driver).use { ground ->
            val half =
                MockResponse
                    .Builder()
                    .body("only half of this arrives")
                    .onResponseBody(CloseSocket())
                    .build()
            ground.server.enqueue(half)
            val client =
                ground.calls {
                    addInterceptor { chain ->
                        chain.proceed(chain.request()).also {
                            it.body.source().request(Long.MAX_VALUE)
                        }
                    }
                }
            assertEquals(200, client.outcomeOf(ground.request()))
            assertEquals(listOf<FailureKind?>(FailureKind.UNEXPECTED_END), ground.failures())
        }

    /** Can be written once. */
    private class OneShot : RequestBody() {
        var written = 0

        override fun contentType(): MediaType? = null

        override fun isOneShot(): Boolean = true

        override fun writeTo(sink: BufferedSink) {
            check(written++ == 0) { "written twice" }
            sink.writeUtf8(LoopbackFixture.BODY)
        }
    }

    @Test
    fun `a body that can be written once is sent once`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            val body = OneShot()
            ground.calls().send(ground.request("PUT", body)).use { response ->
                assertEquals(503, response.code)
                assertEquals(StopReason.BodyNotReplayable, response.retryReport!!.reason)
            }
            assertEquals(1, body.written)
            assertEquals(listOf(LoopbackFixture.BODY), ground.received().map { it.body?.utf8() })
        }

    @Test
    fun `a body that can be written once goes again while nobody asked for it`() =
        LoopbackFixture(driver = driver).use { ground ->
            assertEquals(200, ground.calls { dns(SecondLookUp()) }.outcomeOf(ground.post(OneShot(), host = "one.test")))
            assertEquals(listOf(LoopbackFixture.BODY), ground.received().map { it.body?.utf8() })
        }

    /** Goes on being written while the response is read. */
    private class Duplex : RequestBody() {
        override fun contentType(): MediaType? = null

        override fun isDuplex(): Boolean = true

        override fun writeTo(sink: BufferedSink) {
            sink.writeUtf8(LoopbackFixture.BODY)
            sink.close()
        }
    }

    private fun onHttp2(test: (LoopbackFixture) -> Unit) =
        LoopbackFixture({
            protocols = listOf(Protocol.H2_PRIOR_KNOWLEDGE)
        }, driver = driver).use(test)

    @Test
    fun `a duplex body goes again while nobody asked for it`() =
        onHttp2 { ground ->
            val client =
                ground.calls {
                    protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE))
                    dns(SecondLookUp())
                }
            assertEquals(200, client.outcomeOf(ground.post(Duplex(), host = "one.test")))
            assertEquals(listOf(LoopbackFixture.BODY), ground.received().map { it.body?.utf8() })
        }

    @Test
    fun `a duplex body is never begun twice`() =
        onHttp2 { ground ->
            ground.server.enqueue(status(503))
            val client = ground.calls { protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE)) }
            client.send(ground.request("PUT", Duplex())).use { response ->
                assertEquals(StopReason.BodyNotReplayable, response.retryReport!!.reason)
            }
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a body that an interceptor may have read for its signature counts as touched`() =
        LoopbackFixture(driver = driver).use { ground ->
            val calls =
                ground.calls(configure = { onlyThisClientSends = true }) {
                    dns(SecondLookUp())
                    addInterceptor { chain ->
                        chain.request().body!!.writeTo(okio.Buffer())
                        chain.proceed(chain.request())
                    }
                }
            val failure = assertFailsWith<UnknownHostException> { calls.send(ground.post(OneShot(), host = "one.test")) }
            assertEquals(StopReason.BodyNotReplayable, failure.retryReport!!.reason)
        }

    @Test
    fun `a body that a network interceptor may have read counts as touched`() =
        LoopbackFixture(driver = driver).use { ground ->
            val calls =
                ground.calls(configure = { onlyThisClientSends = true }) {
                    addNetworkInterceptor { chain ->
                        chain.request().body!!.writeTo(okio.Buffer())
                        throw StreamResetException(ErrorCode.REFUSED_STREAM)
                    }
                }
            val failure = assertFailsWith<StreamResetException> { calls.send(ground.post(OneShot())) }
            assertEquals(StopReason.BodyNotReplayable, failure.retryReport!!.reason)
        }

    @Test
    fun `an unsent attempt without a network does not count, any other does`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.connectivity.available()
            ground.connectivity.lost()
            ground.time.at(1) { ground.connectivity.available() }
            val client = ground.calls(RetryPolicy { maxAttempts = 2 }) { dns { throw UnknownHostException(it) } }
            assertIs<UnknownHostException>(client.outcomeOf(ground.request(host = "one.test")))
            assertEquals(listOf(false, true, true), ground.heard<RetryEvent.AttemptFailed>().map { it.counted })
        }
}
