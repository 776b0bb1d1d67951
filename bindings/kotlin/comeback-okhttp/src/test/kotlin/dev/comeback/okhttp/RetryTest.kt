// The plain case: a failed call goes again and says so.
package dev.comeback.okhttp

import dev.comeback.FailureKind
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull

@ParameterizedClass
@EnumSource(Driver::class)
internal class RetryTest(
    private val driver: Driver,
) {
    @Test
    fun `a GET that got a 503 goes again and delivers what came then`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            ground.calls().send(ground.request()).use { response ->
                assertEquals(200, response.code)
                assertEquals("fine", response.body.string())
                val report = response.retryReport!!
                assertNull(report.reason)
                assertEquals(503, report.attempts.single().status)
                assertEquals(2, report.counted)
            }
            assertEquals(2, ground.server.requestCount)
        }

    @Test
    fun `after the last attempt its response is delivered open, with the reason`() =
        LoopbackFixture(driver = driver).use { ground ->
            repeat(4) { ground.server.enqueue(MockResponse(code = 503, body = "busy $it")) }
            ground.calls().send(ground.request()).use { response ->
                assertEquals("busy 3", response.body.string())
                assertEquals(StopReason.Attempts, response.retryReport!!.reason)
            }
            assertEquals(4, ground.server.requestCount)
        }

    @Test
    fun `after the last attempt its exception is thrown as it is, with the report and the earlier failures`() =
        LoopbackFixture(driver = driver).use { ground ->
            repeat(4) { ground.server.enqueue(MockResponse.Builder().onResponseStart(SocketEffect.CloseSocket()).build()) }
            val failure = assertFailsWith<IOException> { ground.calls().send(ground.request()) }
            assertEquals(StopReason.Attempts, failure.retryReport!!.reason)
            assertEquals(List(4) { FailureKind.UNEXPECTED_END }, failure.retryReport!!.attempts.map { it.failure })
            assertEquals(3, failure.suppressed.count { it is IOException })
            assertEquals(4, ground.server.requestCount)
        }

    @Test
    fun `events come in order and end with one final event`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            ground.calls(configure = { label = { it.url.encodedPath } }).send(ground.request(path = "/orders")).close()
            assertEquals(
                listOf(
                    RetryEvent.AttemptFailed::class,
                    RetryEvent.WaitPlanned::class,
                    RetryEvent.Resumed::class,
                    RetryEvent.Finished::class,
                ),
                ground.events.map { it::class },
            )
            assertEquals(setOf<String?>("/orders"), ground.events.mapTo(HashSet()) { it.label })
        }

    @Test
    fun `with the policy off everything passes`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            assertEquals(503, ground.calls(RetryPolicy.OFF).outcomeOf(ground.request()))
            assertEquals(emptyList(), ground.events)
        }
}
