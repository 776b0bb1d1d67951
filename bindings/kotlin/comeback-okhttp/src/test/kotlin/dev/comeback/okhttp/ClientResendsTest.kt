// With `client_resends` off the server sees exactly one of a request that may not be repeated, and redirects and token refresh still work.
package dev.comeback.okhttp

import dev.comeback.ClientResends
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.Protocol
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.ValueSource
import java.io.IOException
import kotlin.test.assertEquals
import kotlin.test.assertIs

@ParameterizedClass
@EnumSource(Driver::class)
internal class ClientResendsTest(
    private val driver: Driver,
) {
    @Test
    fun `a payment that got 408 reaches the server once`() = assertSentOnce(status(408))

    @Test
    fun `a payment that got 503 with Retry-After 0 reaches the server once`() = assertSentOnce(status(503, "Retry-After" to "0"))

    private fun assertSentOnce(answer: MockResponse) =
        Ground(driver = driver).use { ground ->
            ground.server.enqueue(answer)
            ground.calls(RetryPolicy.PAYMENT).send(ground.post()).use { response ->
                assertEquals(answer.code, response.code)
                assertEquals(StopReason.NotRepeatable, response.retryReport!!.reason)
            }
            assertEquals(listOf(Ground.BODY), ground.received().map { it.body?.utf8() })
        }

    @Test
    fun `a payment whose pooled connection is dropped reaches the server once`() =
        Ground(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse())
            ground.server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
            val client = ground.calls(RetryPolicy.PAYMENT)
            client.send(ground.request()).close()
            assertIs<IOException>(client.outcomeOf(ground.post()))
            assertEquals(listOf("GET", "POST"), ground.received().map { it.method })
        }

    @ParameterizedTest
    @ValueSource(strings = ["KEEP", "OFF"])
    fun `a misdirected payment goes over a connection of its own only if the client may re-send`(resends: String) =
        Ground({
            useHttps(Certificates.server.sslSocketFactory())
        }).use { ground ->
            ground.server.enqueue(MockResponse())
            ground.server.enqueue(status(421))
            val client =
                ground.calls(RetryPolicy { clientResends = ClientResends.valueOf(resends) }) {
                    sslSocketFactory(Certificates.client.sslSocketFactory(), Certificates.client.trustManager)
                    dns { listOf(LOOPBACK) }
                }

            client.send(ground.request(host = "one.test")).use { assertEquals(Protocol.HTTP_2, it.protocol) }
            val outcome = client.outcomeOf(ground.post(host = "two.test"))

            val isResent = resends == "KEEP"
            assertEquals(if (isResent) 200 else 421, outcome)
            assertEquals(if (isResent) 2 else 1, ground.received().count { it.method == "POST" })
        }

    @ParameterizedTest
    @ValueSource(ints = [307, 308])
    fun `a redirect that keeps the body is followed`(code: Int) =
        Ground(driver = driver).use { ground ->
            ground.server.enqueue(status(code, "Location" to "/elsewhere"))
            assertEquals(200, ground.calls(RetryPolicy.PAYMENT).outcomeOf(ground.post()))
            assertEquals(
                listOf("/" to Ground.BODY, "/elsewhere" to Ground.BODY),
                ground.received().map { it.url.encodedPath to it.body?.utf8() },
            )
        }

    @Test
    fun `a token is refreshed and the request sent with it`() =
        Ground(driver = driver).use { ground ->
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
                listOf(null to Ground.BODY, "fresh" to Ground.BODY),
                ground.received().map { it.headers["Authorization"] to it.body?.utf8() },
            )
        }

    @Test
    fun `after a 503 that went again by itself redirects still work`() =
        Ground(driver = driver).use { ground ->
            ground.server.enqueue(status(503, "Retry-After" to "0"))
            ground.server.enqueue(status(307, "Location" to "/elsewhere"))
            val request = ground.post { header(Ground.KEY, "k") }
            assertEquals(200, ground.calls(RetryPolicy.PAYMENT).outcomeOf(request))
            assertEquals(List(3) { Ground.BODY }, ground.received().map { it.body?.utf8() })
        }
}
