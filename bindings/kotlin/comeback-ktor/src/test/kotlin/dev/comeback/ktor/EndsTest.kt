// What ends a wait and a call: an edge, a close, a cancellation, a network that is gone; on a mocked engine in virtual time.
package dev.comeback.ktor

import dev.comeback.RetryEvent
import dev.comeback.RetryStoppedException
import dev.comeback.WokenBy
import dev.comeback.retryReport
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.job
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runCurrent
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import java.io.IOException
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertTrue

@OptIn(ExperimentalCoroutinesApi::class)
class EndsTest {
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
}
