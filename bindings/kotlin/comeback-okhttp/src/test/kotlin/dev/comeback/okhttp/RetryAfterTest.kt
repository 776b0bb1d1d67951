// Retry-After on its way from the wire to the wait.
package dev.comeback.okhttp

import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.CsvSource
import org.junit.jupiter.params.provider.EnumSource
import java.util.concurrent.TimeUnit.NANOSECONDS
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertTrue

@ParameterizedClass
@EnumSource(Driver::class)
internal class RetryAfterTest(
    private val driver: Driver,
) {
    @ParameterizedTest
    @CsvSource("2, 2000", "0.129, 129", "2.0001, 2001", "0, 0", "-3, 0", "120junk, 0", "1e3, 0")
    fun `delays are read as seconds, and junk is no hint`(
        value: String,
        millis: Long,
    ) = assertFloor(millis, "Retry-After" to value)

    @Test
    fun `a date is measured against the response's own, whatever the phone's clock says`() =
        assertFloor(7_000, "Date" to "Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After" to "Sun, 06 Nov 1994 08:49:44 GMT")

    @Test
    fun `of several lines the longest counts`() = assertFloor(3_000, "Retry-After" to "1", "Retry-After" to "3", "Retry-After" to "0")

    private fun assertFloor(
        millis: Long,
        vararg headers: Pair<String, String>,
    ) = LoopbackFixture(driver = driver).use { ground ->
        ground.server.enqueue(status(503, *headers))
        assertEquals(
            200,
            ground
                .client(
                    RetryPolicy {
                        clientResends = dev.comeback.ClientResends.OFF
                    },
                ).outcomeOf(ground.post { makeIdempotencyKey() }),
        )
        assertEquals(millis, NANOSECONDS.toMillis(ground.heard<RetryEvent.WaitPlanned>().single().floorNanos))
        assertTrue(NANOSECONDS.toMillis(ground.time.nanos()) >= millis)
    }

    @ParameterizedTest
    @CsvSource("86400", "99999999999", "999999999999999999999999999999")
    fun `a server that asks for too long gets no sooner attempt, and the caller its answer at once`(seconds: String) =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503, "Retry-After" to seconds))
            ground.calls().send(ground.request()).use { response ->
                assertEquals(503, response.code)
                val reason = assertIs<StopReason.ServerWaitTooLong>(response.retryReport!!.reason)
                assertTrue(reason.ms >= 86_400_000)
            }
            assertEquals(1, ground.server.requestCount)
            assertEquals(0, ground.time.nanos())
        }

    @Test
    fun `a server's explicit word is heard where the policy names its header`() =
        LoopbackFixture(driver = driver).use { ground ->
            val policy = RetryPolicy { shouldRetryHeader = "x-should-retry" }
            ground.server.enqueue(status(503, "x-should-retry" to "false"))
            assertEquals(503, ground.calls(policy).outcomeOf(ground.request()))
            ground.server.enqueue(status(400, "x-should-retry" to "true"))
            assertEquals(200, ground.calls(policy).outcomeOf(ground.request()))
        }

    @Test
    fun `504 of a request that may only be answered from the cache is its answer`() =
        LoopbackFixture(driver = driver).use { ground ->
            assertEquals(504, ground.calls().outcomeOf(ground.request { header("Cache-Control", "only-if-cached") }))
            assertEquals(0, ground.server.requestCount)
        }
}
