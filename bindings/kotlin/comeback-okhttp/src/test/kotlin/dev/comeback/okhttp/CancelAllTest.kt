// The factory's cancelAll: calls that wait, calls in flight, and none of the later ones.
package dev.comeback.okhttp

import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.driver.SystemTime
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect
import org.junit.jupiter.api.Test
import java.io.IOException
import kotlin.concurrent.thread
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.time.Duration.Companion.hours

internal class CancelAllTest {
    private val patient =
        RetryPolicy {
            base = 1.hours
            cap = 1.hours
            maxElapsed = 24.hours
        }

    @Test
    fun `all calls that have not ended are cancelled, and those that start later go on`() =
        LoopbackFixture(clock = SystemTime, driver = Driver.ENQUEUED).use { fixture ->
            val factory = fixture.factory(patient)
            assertEquals(200, factory.newCall(fixture.request()).future().outcome())
            fixture.server.enqueue(status(503))
            val waiting = factory.newCall(fixture.request()).future()
            fixture.awaitUntil { fixture.heard<RetryEvent.WaitPlanned>().size == 1 }
            repeat(2) { fixture.server.enqueue(MockResponse.Builder().onResponseStart(SocketEffect.Stall).build()) }
            val inFlight = factory.newCall(fixture.request()).future()
            var executed: Any? = null
            val executing = thread { executed = factory.outcomeOf(fixture.request()) }
            fixture.awaitUntil { fixture.server.requestCount == 4 }
            factory.cancelAll()
            assertEquals("Canceled", assertIs<IOException>(waiting.outcome()).message)
            assertIs<IOException>(inFlight.outcome())
            executing.join()
            assertIs<IOException>(executed)
            assertEquals(200, factory.newCall(fixture.request()).future().outcome())
        }
}
