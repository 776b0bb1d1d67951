// What OkHttp sends again by itself: nothing of a request that must not be repeated, no status twice; redirects, token refresh and routes as ever.
package dev.comeback.okhttp

import dev.comeback.ClientResends
import dev.comeback.FailureKind
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.MockWebServer
import mockwebserver3.RecordedRequest
import mockwebserver3.SocketEffect.CloseSocket
import mockwebserver3.SocketEffect.CloseStream
import okhttp3.ConnectionSpec
import okhttp3.Headers
import okhttp3.Protocol
import okhttp3.TlsVersion
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.Arguments
import org.junit.jupiter.params.provider.Arguments.arguments
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.MethodSource
import org.junit.jupiter.params.provider.ValueSource
import java.io.IOException
import java.net.InetAddress
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertSame

@ParameterizedClass
@EnumSource(Driver::class)
internal class ClientResendsTest(
    private val driver: Driver,
) {
    @ParameterizedTest
    @MethodSource("policies")
    fun `a keyless POST that got 408 reaches the server once`(policy: RetryPolicy) = assertSentOnce(policy, status(408))

    @ParameterizedTest
    @MethodSource("policies")
    fun `a keyless POST that got 503 with Retry-After 0 reaches the server once`(policy: RetryPolicy) =
        assertSentOnce(policy, status(503, "Retry-After" to "0"))

    private fun assertSentOnce(
        policy: RetryPolicy,
        answer: MockResponse,
    ) = LoopbackFixture(driver = driver).use { ground ->
        ground.server.enqueue(answer)
        ground.calls(policy).send(ground.post()).use { response ->
            assertEquals(answer.code, response.code)
            assertEquals(StopReason.NotRepeatable, response.retryReport!!.reason)
        }
        assertEquals(listOf(LoopbackFixture.BODY), ground.received().map { it.body?.utf8() })
    }

    private fun MockWebServer.dropSecondRequest() {
        enqueue(MockResponse())
        enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
    }

    @ParameterizedTest
    @MethodSource("policies")
    fun `a keyless POST whose pooled connection is dropped reaches the server once`(policy: RetryPolicy) =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.dropSecondRequest()
            val calls = ground.calls(policy)
            calls.send(ground.request()).close()
            assertIs<IOException>(calls.outcomeOf(ground.post()))
            assertEquals(listOf("GET", "POST"), ground.received().map { it.method })
        }

    @ParameterizedTest
    @EnumSource(ClientResends::class)
    fun `a GET whose pooled connection is dropped goes again unnoticed unless the client may not re-send`(resends: ClientResends) =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.dropSecondRequest()
            val calls = ground.calls(RetryPolicy { clientResends = resends })
            calls.send(ground.request()).close()
            assertEquals(200, calls.outcomeOf(ground.request()))
            assertEquals(3, ground.server.requestCount)
            assertEquals(if (resends == ClientResends.KEEP) 0 else 1, ground.heard<RetryEvent.AttemptFailed>().size)
        }

    /** The bound that docs/limits.md gives. */
    @Test
    fun `with keep OkHttp sends a GET again for each pooled connection that broke`() =
        LoopbackFixture(driver = driver).use { fixture ->
            val together = CyclicBarrier(POOLED)
            val calls = fixture.calls(RetryPolicy { clientResends = ClientResends.KEEP })
            fixture.server.dispatcher =
                object : mockwebserver3.Dispatcher() {
                    override fun dispatch(request: RecordedRequest): MockResponse {
                        if (request.url.encodedPath == "/fill") together.await(10, TimeUnit.SECONDS)
                        if (request.url.encodedPath == "/fill" || request.connectionIndex >= POOLED) return MockResponse()
                        return MockResponse.Builder().onResponseStart(CloseSocket()).build()
                    }
                }
            List(POOLED) { calls.newCall(fixture.request(path = "/fill")).future() }.forEach { it.get(10, TimeUnit.SECONDS).close() }
            assertEquals(200, calls.outcomeOf(fixture.request(path = "/once")))
            assertEquals(POOLED + 1, fixture.received().count { it.url.encodedPath == "/once" })
            assertEquals(emptyList(), fixture.heard<RetryEvent.AttemptFailed>())
        }

    @ParameterizedTest
    @MethodSource("followedUpByTheClient")
    fun `a GET reaches the server as often as its report says`(
        code: Int,
        retryAfter: String?,
    ) = LoopbackFixture(driver = driver).use { ground ->
        repeat(20) { ground.server.enqueue(answer(code, retryAfter)) }
        ground.calls(RetryPolicy { maxAttempts = 4 }).send(ground.request()).use { response ->
            assertEquals(code, response.code)
            assertEquals(4, response.retryReport!!.attempts.size)
        }
        assertEquals(4, ground.server.requestCount)
    }

    @ParameterizedTest
    @MethodSource("followedUpByTheClient")
    fun `whoever stands outside sees the headers that the server sent`(
        code: Int,
        retryAfter: String?,
    ) = LoopbackFixture(driver = driver).use { ground ->
        ground.server.enqueue(answer(code, retryAfter))
        val atNetwork = CopyOnWriteArrayList<Headers>()
        val calls =
            ground.calls {
                addNetworkInterceptor { chain -> chain.proceed(chain.request()).also { atNetwork += it.headers } }
            }
        calls.send(ground.post()).use { response ->
            assertEquals(atNetwork.single(), response.headers)
            assertEquals(atNetwork.single(), response.networkResponse?.headers)
            assertEquals(listOfNotNull(retryAfter), response.headers("Retry-After"))
        }
    }

    @ParameterizedTest
    @MethodSource("followedUpByTheClient")
    fun `an interceptor further in reads the same wait`(
        code: Int,
        retryAfter: String?,
    ) = LoopbackFixture(driver = driver).use { ground ->
        ground.server.enqueue(answer(code, retryAfter))
        val read = CopyOnWriteArrayList<Long?>()
        val calls =
            ground.calls {
                addInterceptor { chain ->
                    chain.proceed(chain.request()).also {
                        read +=
                            it.header("Retry-After")?.toLong()
                    }
                }
            }
        calls.outcomeOf(ground.post())
        assertEquals(retryAfter?.toLong() ?: 0, read.single() ?: 0)
    }

    private fun answer(
        code: Int,
        retryAfter: String?,
    ) = MockResponse
        .Builder()
        .code(code)
        .apply { retryAfter?.let { addHeader("Retry-After", it) } }
        .addHeader("X-Last", "1")
        .build()

    @ParameterizedTest
    @ValueSource(booleans = [true, false])
    fun `a keyless POST still tries every address of a host`(fastFallback: Boolean) =
        LoopbackFixture(driver = driver).use { ground ->
            val calls =
                ground.calls {
                    fastFallback(fastFallback)
                    dns { listOf(InetAddress.getByAddress(byteArrayOf(127, 0, 0, 2)), LOOPBACK) }
                }
            assertEquals(200, calls.outcomeOf(ground.post(host = "one.test")))
            assertEquals(emptyList(), ground.heard<RetryEvent.AttemptFailed>())
        }

    @ParameterizedTest
    @EnumSource(ClientResends::class)
    fun `a misdirected request was not processed and goes over a connection of its own`(resends: ClientResends) =
        LoopbackFixture({
            useHttps(Certificates.server.sslSocketFactory())
        }, driver = driver).use { ground ->
            ground.server.enqueue(MockResponse())
            ground.server.enqueue(status(421))
            val calls =
                ground.calls(RetryPolicy { clientResends = resends }) {
                    sslSocketFactory(Certificates.client.sslSocketFactory(), Certificates.client.trustManager)
                    dns { listOf(LOOPBACK) }
                }

            calls.send(ground.request(host = "one.test")).use { assertEquals(Protocol.HTTP_2, it.protocol) }
            assertEquals(200, calls.outcomeOf(ground.post(host = "two.test")))
            assertEquals(2, ground.received().count { it.method == "POST" })
        }

    @ParameterizedTest
    @ValueSource(ints = [307, 308])
    fun `a redirect that keeps the body is followed`(code: Int) =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(code, "Location" to "/elsewhere"))
            assertEquals(200, ground.calls(RetryPolicy.PAYMENT).outcomeOf(ground.post()))
            assertEquals(
                listOf("/" to LoopbackFixture.BODY, "/elsewhere" to LoopbackFixture.BODY),
                ground.received().map { it.url.encodedPath to it.body?.utf8() },
            )
        }

    @Test
    fun `a token is refreshed and the request sent with it`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(401))
            val client =
                ground.calls(RetryPolicy.PAYMENT) {
                    authenticator { _, response ->
                        response.request
                            .newBuilder()
                            .header("Authorization", "fresh")
                            .build()
                    }
                }
            assertEquals(200, client.outcomeOf(ground.post()))
            assertEquals(
                listOf(null to LoopbackFixture.BODY, "fresh" to LoopbackFixture.BODY),
                ground.received().map { it.headers["Authorization"] to it.body?.utf8() },
            )
        }

    @ParameterizedTest
    @ValueSource(strings = ["POST", "GET"])
    fun `OkHttp still falls back to an older TLS version, whatever must not be sent again`(method: String) =
        LoopbackFixture(driver = driver).use { fixture ->
            NoTls13Server().use { server ->
                server.start()
                val calls =
                    fixture.calls(if (method == "GET") RetryPolicy.PAYMENT else RetryPolicy.DEFAULT) {
                        sslSocketFactory(Certificates.client.sslSocketFactory(), Certificates.client.trustManager)
                        val older = ConnectionSpec.Builder(ConnectionSpec.MODERN_TLS).tlsVersions(TlsVersion.TLS_1_2).build()
                        connectionSpecs(listOf(ConnectionSpec.MODERN_TLS, older))
                    }
                val url = "https://127.0.0.1:${server.port}/"
                val request = (if (method == "GET") fixture.request() else fixture.post()).newBuilder().url(url).build()
                assertEquals(200, calls.outcomeOf(request))
                assertEquals(1, server.heads.get())
                assertEquals(emptyList(), fixture.heard<RetryEvent.AttemptFailed>())
            }
        }

    private fun refusingOnce(test: (LoopbackFixture) -> Unit) =
        LoopbackFixture({
            protocols = listOf(Protocol.H2_PRIOR_KNOWLEDGE)
            enqueue(MockResponse())
            // Not at the request's start: the server takes an answer from its queue only after that, and might refuse the next one too.
            enqueue(MockResponse.Builder().onResponseStart(CloseStream(ErrorCode.REFUSED_STREAM.httpCode)).build())
        }, driver = driver).use(test)

    @Test
    fun `a keyless POST whose stream is refused goes again by OkHttp itself, though an interceptor might have sent it elsewhere`() =
        refusingOnce { fixture ->
            val calls =
                fixture.calls {
                    protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE))
                    addInterceptor { it.proceed(it.request()) }
                }
            calls.send(fixture.request()).close()
            assertEquals(200, calls.outcomeOf(fixture.post()))
            assertEquals(emptyList(), fixture.heard<RetryEvent.AttemptFailed>())
        }

    @Test
    fun `a refused stream does not run network interceptors again that may have sent the POST elsewhere`() =
        refusingOnce { fixture ->
            val runs = AtomicInteger()
            val calls =
                fixture.calls {
                    protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE))
                    addNetworkInterceptor { chain -> chain.proceed(chain.request()).also { runs.incrementAndGet() } }
                }
            calls.send(fixture.request()).close()
            val failure = assertIs<StreamResetException>(calls.outcomeOf(fixture.post()))
            assertEquals(StopReason.NotRepeatable, failure.retryReport?.reason)
            assertEquals(1, runs.get())
        }

    @Test
    fun `what is thrown for a POST that is not sent again is what the exchange threw`() =
        LoopbackFixture(driver = driver).use { fixture ->
            fixture.server.dropSecondRequest()
            val thrown = CopyOnWriteArrayList<IOException>()
            val calls =
                fixture.calls {
                    addNetworkInterceptor { chain ->
                        try {
                            chain.proceed(chain.request())
                        } catch (failure: IOException) {
                            thrown += failure
                            throw failure
                        }
                    }
                }
            calls.send(fixture.request()).close()
            val outcome = calls.outcomeOf(fixture.post())
            assertSame(thrown.single(), outcome)
        }

    @Test
    fun `a failure that an interceptor further in wraps is still judged by what the exchange threw`() =
        LoopbackFixture(driver = driver).use { fixture ->
            fixture.server.dropSecondRequest()
            val calls =
                fixture.calls(RetryPolicy.PAYMENT) {
                    addInterceptor { chain ->
                        try {
                            chain.proceed(chain.request())
                        } catch (failure: IOException) {
                            throw IOException("wrapped", failure)
                        }
                    }
                }
            calls.send(fixture.request()).close()
            assertEquals(200, calls.outcomeOf(fixture.request()))
            assertEquals(listOf<FailureKind?>(FailureKind.UNEXPECTED_END), fixture.heard<RetryEvent.AttemptFailed>().map { it.failure })
        }

    internal companion object {
        /** What OkHttp's pool keeps idle. */
        const val POOLED = 5

        @JvmStatic
        fun policies(): List<RetryPolicy> = listOf(RetryPolicy.DEFAULT, RetryPolicy.READ, RetryPolicy.PAYMENT, RetryPolicy.BATCH)

        /** What OkHttp follows up by itself. */
        @JvmStatic
        fun followedUpByTheClient(): List<Arguments> =
            listOf(arguments(408, null), arguments(408, "0"), arguments(503, "0"), arguments(503, "00"))
    }
}
