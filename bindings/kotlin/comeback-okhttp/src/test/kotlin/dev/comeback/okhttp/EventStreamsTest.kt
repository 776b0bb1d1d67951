// OkHttp's event sources through the call factory: the call's timeout ends with the opening of the stream, and not the stream.
package dev.comeback.okhttp

import dev.comeback.Jitter
import dev.comeback.RetryPolicy
import dev.comeback.driver.SystemTime
import mockwebserver3.MockResponse
import okhttp3.OkHttpClient
import okhttp3.Response
import okhttp3.sse.EventSource
import okhttp3.sse.EventSourceListener
import okhttp3.sse.EventSources
import org.junit.jupiter.api.Test
import java.io.InterruptedIOException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.time.Duration.Companion.milliseconds

internal class EventStreamsTest {
    private class Listening : EventSourceListener() {
        val events = CopyOnWriteArrayList<String>()
        val ended = CompletableFuture<String>()

        override fun onEvent(
            eventSource: EventSource,
            id: String?,
            type: String?,
            data: String,
        ) {
            events += data
        }

        override fun onClosed(eventSource: EventSource) {
            ended.complete("closed")
        }

        override fun onFailure(
            eventSource: EventSource,
            t: Throwable?,
            response: Response?,
        ) {
            ended.complete("failed: $t")
        }
    }

    /** Six events within 900 ms. */
    private val stream =
        MockResponse
            .Builder()
            .addHeader("Content-Type", "text/event-stream")
            .body((1..6).joinToString("") { "data: event $it\n\n" })
            .throttleBody(15, 150, TimeUnit.MILLISECONDS)
            .build()

    private val quick =
        RetryPolicy {
            base = 1.milliseconds
            cap = 1.milliseconds
        }

    private fun OkHttpClient.Builder.callTimeout(millis: Long) = callTimeout(millis, TimeUnit.MILLISECONDS)

    @Test
    fun `an event source hears all events, though its stream lasts longer than the call's timeout`() =
        LoopbackFixture(clock = SystemTime, driver = Driver.FACTORY).use { fixture ->
            fixture.server.enqueue(status(503))
            fixture.server.enqueue(stream)
            val listening = Listening()
            val calls = fixture.calls(quick) { callTimeout(500) }
            EventSources.createFactory(calls).newEventSource(fixture.request(), listening)
            assertEquals("closed", listening.ended.get(10, TimeUnit.SECONDS))
            assertEquals(6, listening.events.size)
        }

    @Test
    fun `a call whose timeout was ended waits and attempts without it`() =
        LoopbackFixture(clock = SystemTime, driver = Driver.ENQUEUED).use { fixture ->
            fixture.server.enqueue(status(503))
            val policy =
                RetryPolicy {
                    base = 400.milliseconds
                    cap = 400.milliseconds
                    jitter = Jitter.NONE
                }
            val call = fixture.factory(policy) { callTimeout(200) }.newCall(fixture.request())
            call.timeout().cancel()
            assertEquals(200, call.future().outcome())
        }

    @Test
    fun `without that, the call's timeout ends what is read of its answer, as it does in OkHttp`() {
        LoopbackFixture(clock = SystemTime, driver = Driver.FACTORY).use { fixture ->
            fixture.server.enqueue(stream)
            val calls = fixture.calls(quick) { callTimeout(500) }
            val read = calls.send(fixture.request()).use { runCatching { it.body.string() } }
            assertIs<InterruptedIOException>(read.exceptionOrNull())
        }
    }
}
