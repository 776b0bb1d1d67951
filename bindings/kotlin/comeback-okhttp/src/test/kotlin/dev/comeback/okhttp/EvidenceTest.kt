// What an attempt sent is known by what was heard of it, never by the type of an exception; and whether a call may have arrived is told truly.
package dev.comeback.okhttp

import dev.comeback.FailureKind
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.mayHaveArrived
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.Call
import okhttp3.HttpUrl
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.CsvSource
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.ValueSource
import java.io.IOException
import java.net.ConnectException
import java.net.InetSocketAddress
import java.net.Proxy
import java.util.UUID
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs

@ParameterizedClass
@EnumSource(Driver::class)
internal class EvidenceTest(
    private val driver: Driver,
) {
    private fun ground() = LoopbackFixture(driver = driver)

    private fun LoopbackFixture.dieAfterRequest() = server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())

    /** Nobody listens there. */
    private val refused: HttpUrl = LoopbackFixture().use { it.url() }

    private fun Request.to(url: HttpUrl) = newBuilder().url(url).build()

    private fun LoopbackFixture.posts() = received().count { it.method == "POST" }

    /** A keyless POST through [calls] fails, the server has seen it once, and the report does not deny it. */
    private fun LoopbackFixture.assertArrivedOnce(calls: Call.Factory) {
        val failure = assertFailsWith<IOException> { calls.send(post()) }
        assertEquals(1, posts())
        assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
        assertEquals(true, failure.mayHaveArrived)
        assertEquals(true, heard<RetryEvent.Finished>().last().mayHaveArrived)
    }

    @Test
    fun `a request that another client sent is not undone by a refusal that the same client met`() =
        ground().use { ground ->
            ground.dieAfterRequest()
            val other = ground.remember(OkHttpClient())
            ground.assertArrivedOnce(
                ground.calls {
                    addInterceptor { chain ->
                        try {
                            other.newCall(chain.request()).execute()
                        } catch (_: IOException) {
                            other.newCall(chain.request().to(refused)).execute()
                        }
                    }
                },
            )
        }

    @ParameterizedTest
    @ValueSource(strings = ["default", "off"])
    fun `a request that another client with Comeback sent is not undone by a refusal that this one met`(policy: String) =
        ground().use { ground ->
            ground.dieAfterRequest()
            val other = ground.client(if (policy == "off") RetryPolicy.OFF else RetryPolicy.DEFAULT)
            ground.assertArrivedOnce(
                ground.calls {
                    addInterceptor { chain ->
                        try {
                            other.newCall(chain.request()).execute()
                        } catch (_: IOException) {
                            chain.proceed(chain.request().to(refused))
                        }
                    }
                },
            )
        }

    @Test
    fun `a refusal that was suppressed proves nothing of the request that came after it`() =
        ground().use { ground ->
            ground.dieAfterRequest()
            val other = ground.remember(OkHttpClient())
            ground.assertArrivedOnce(
                ground.calls {
                    addInterceptor { chain ->
                        try {
                            chain.proceed(chain.request().to(refused))
                        } catch (first: IOException) {
                            try {
                                other.newCall(chain.request()).execute()
                            } catch (second: IOException) {
                                throw ConnectException("both failed").apply { addSuppressed(first) }.apply { addSuppressed(second) }
                            }
                        }
                    }
                },
            )
        }

    @Test
    fun `an interceptor that proceeds twice has sent what it sent first`() =
        ground().use { ground ->
            ground.server.enqueue(status(500))
            ground.assertArrivedOnce(
                ground.calls {
                    addInterceptor { chain ->
                        chain.proceed(chain.request()).close()
                        chain.proceed(chain.request().to(refused))
                    }
                },
            )
        }

    @Test
    fun `a redirect to a host that refuses comes after a request that arrived`() =
        ground().use { ground ->
            ground.server.enqueue(status(307, "Location" to refused.toString()))
            ground.assertArrivedOnce(ground.calls())
        }

    @ParameterizedTest
    @ValueSource(booleans = [true, false])
    fun `a token refresh that is refused comes after a request that arrived`(withComeback: Boolean) =
        ground().use { ground ->
            ground.server.enqueue(status(401))
            val refreshing = if (withComeback) ground.client() else ground.remember(OkHttpClient())
            ground.assertArrivedOnce(
                ground.calls {
                    authenticator { _, response ->
                        refreshing.newCall(response.request.to(refused)).execute().close()
                        null
                    }
                },
            )
        }

    @Test
    fun `what no host took goes again, interceptors or not, where the app says that only this client sends`() =
        ground().use { ground ->
            val calls = ground.calls(configure = { onlyThisClientSends = true }) { addInterceptor { it.proceed(it.request()) } }
            val failure = assertFailsWith<ConnectException> { calls.send(ground.post().to(refused)) }
            assertEquals(StopReason.Attempts, failure.retryReport!!.reason)
            assertEquals(List(4) { OutcomeClass.NEVER_SENT }, ground.heard<RetryEvent.AttemptFailed>().map { it.outcome })
            assertEquals(false, failure.mayHaveArrived)
        }

    @Test
    fun `an interceptor further in may have sent a request through another client first, so it goes once`() =
        ground().use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
            val other = ground.remember(OkHttpClient())
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        try {
                            other.newCall(ground.post()).execute()
                        } catch (_: IOException) {
                            chain.proceed(chain.request())
                        }
                    }
                }
            val failure = assertFailsWith<ConnectException> { calls.send(ground.post().to(refused)) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            assertEquals(true, failure.mayHaveArrived)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `OkHttp's own interceptors send nothing elsewhere`() =
        ground().use { ground ->
            val calls = ground.calls { addInterceptor(okhttp3.CompressionInterceptor()) }
            val failure = assertFailsWith<ConnectException> { calls.send(ground.post().to(refused)) }
            assertEquals(StopReason.Attempts to false, failure.retryReport!!.reason to failure.mayHaveArrived)
        }

    @Test
    fun `a GET that no host took did not arrive, though nobody listened to its first attempt`() =
        ground().use { ground ->
            val failure = assertFailsWith<ConnectException> { ground.calls().send(ground.request().to(refused)) }
            assertEquals(false, failure.mayHaveArrived)
        }

    @Test
    fun `a GET that was redirected to a host that refuses may have arrived`() =
        ground().use { ground ->
            ground.server.enqueue(status(307, "Location" to refused.toString()))
            val failure = assertFailsWith<ConnectException> { ground.calls(RetryPolicy { maxAttempts = 1 }).send(ground.request()) }
            assertEquals(true, failure.mayHaveArrived)
        }

    @Test
    fun `a permanent failure after the request arrived may have arrived, one before it did not`() =
        ground().use { ground ->
            val garbage = SpeakingGarbage().also { it.start() }
            garbage.use {
                val failure =
                    assertFailsWith<IOException> {
                        ground.calls().send(
                            ground.post().to(
                                ground
                                    .url()
                                    .newBuilder()
                                    .port(garbage.port)
                                    .build(),
                            ),
                        )
                    }
                assertEquals(StopReason.Permanent, failure.retryReport!!.reason)
                assertEquals(true, failure.mayHaveArrived)
            }
            ground.server.useHttps(Certificates.server.sslSocketFactory())
            val secure =
                ground.post().to(
                    ground
                        .url()
                        .newBuilder()
                        .scheme("https")
                        .build(),
                )
            val failure = assertFailsWith<IOException> { ground.calls().send(secure) }
            assertEquals(StopReason.Permanent, failure.retryReport!!.reason)
            assertEquals(listOf(FailureKind.PROTOCOL, FailureKind.CERTIFICATE), ground.heard<RetryEvent.AttemptFailed>().map { it.failure })
            assertEquals(false, failure.mayHaveArrived)
        }

    @Test
    fun `a call that was cancelled after its request arrived may have arrived`() =
        ground().use { ground ->
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        chain.proceed(chain.request()).close()
                        chain.call().cancel()
                        throw IOException("Canceled")
                    }
                }
            assertFailsWith<IOException> { calls.send(ground.post()) }
            assertIs<StopReason.Cancelled>(ground.heard<RetryEvent.Finished>().single().reason)
            assertEquals(true, ground.heard<RetryEvent.Finished>().single().mayHaveArrived)
        }

    private fun changing(change: Request.Builder.() -> Unit) =
        Interceptor { chain: Interceptor.Chain ->
            chain.proceed(
                chain
                    .request()
                    .newBuilder()
                    .apply(change)
                    .build(),
            )
        }

    @Test
    fun `a GET that leaves as a POST is judged as the POST it left as`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            ground.calls { addInterceptor(changing { post("q".toRequestBody()) }) }.send(ground.request()).use { response ->
                assertEquals(StopReason.NotRepeatable, response.retryReport!!.reason)
            }
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a GET that leaves as a POST and breaks is judged as the POST it left as`() =
        ground().use { ground ->
            ground.dieAfterRequest()
            val failure =
                assertFailsWith<IOException> {
                    ground.calls { addInterceptor(changing { post("q".toRequestBody()) }) }.send(ground.request())
                }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a key that an interceptor makes anew each time makes nothing repeatable`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            val calls = ground.calls { addInterceptor(changing { header(LoopbackFixture.KEY, UUID.randomUUID().toString()) }) }
            calls.send(ground.post()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a caller's key that an interceptor replaces is none either`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            val calls = ground.calls { addInterceptor(changing { header(LoopbackFixture.KEY, UUID.randomUUID().toString()) }) }
            calls
                .send(
                    ground.post { header(LoopbackFixture.KEY, "the caller's") },
                ).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `what an interceptor further in will only have from the cache is not waited for`() =
        ground().use { ground ->
            val calls = ground.calls { addInterceptor(changing { header("Cache-Control", "only-if-cached") }) }
            assertEquals(504, calls.outcomeOf(ground.request()))
            assertEquals(0, ground.heard<RetryEvent.WaitPlanned>().size)
            assertEquals(0, ground.time.nanos())
        }

    @Test
    fun `a POST further in that was answered by a redirect is judged too`() =
        ground().use { ground ->
            ground.server.enqueue(status(303, "Location" to "/elsewhere"))
            ground.server.enqueue(status(503))
            val calls = ground.calls { addInterceptor(changing { post("q".toRequestBody()) }) }
            calls.send(ground.request()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(listOf("POST", "GET"), ground.received().map { it.method })
        }

    @ParameterizedTest
    @CsvSource("407, 1", "403, 1", "404, 1", "502, 4")
    fun `a proxy that refuses a tunnel is asked once, one that only cannot is asked again`(
        code: Int,
        connects: Int,
    ) = LoopbackFixture(driver = driver).use { ground ->
        val proxy = TunnelRefusing(code).also { it.start() }
        proxy.use {
            val calls = ground.calls { proxy(Proxy(Proxy.Type.HTTP, InetSocketAddress(LOOPBACK, it.port))) }
            val secure =
                ground
                    .post()
                    .newBuilder()
                    .url("https://one.test/")
                    .build()
            val failure = assertFailsWith<IOException> { calls.send(secure) }
            assertEquals(connects, it.heads.get())
            assertEquals(if (connects == 1) StopReason.Permanent else StopReason.Attempts, failure.retryReport!!.reason)
            assertEquals(false, failure.mayHaveArrived)
        }
    }
}
