// Request bodies that go again or do not, and responses that are streamed; on a mocked engine in virtual time.
package dev.comeback.ktor

import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import io.ktor.client.call.body
import io.ktor.client.engine.mock.respond
import io.ktor.client.request.post
import io.ktor.client.request.prepareGet
import io.ktor.client.request.put
import io.ktor.client.request.setBody
import io.ktor.client.statement.bodyAsText
import io.ktor.http.HttpStatusCode
import io.ktor.http.content.ByteArrayContent
import io.ktor.http.content.OutgoingContent
import io.ktor.utils.io.ByteReadChannel
import io.ktor.utils.io.ByteWriteChannel
import io.ktor.utils.io.writeFully
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import java.io.IOException
import java.net.ConnectException
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue

@OptIn(ExperimentalCoroutinesApi::class)
class BodiesTest {
    @Test
    fun `bytes go again, a channel and a writer do not unless they are vouched for`() =
        runTest {
            for ((content, isVouched, sends) in listOf(
                Triple(ByteArrayContent("x".encodeToByteArray()), false, 2),
                Triple(readable(), false, 1),
                Triple(readable(), true, 2),
                Triple(writable(), false, 1),
                Triple(writable(), true, 2),
            )) {
                val ground = MockEngineFixture(this)
                val client =
                    ground.client { number ->
                        ground.sent
                            .last()
                            .body
                            .handedOut()
                        if (number == 1) status(503) else status(200)
                    }
                client.put("http://host/") {
                    setBody(content)
                    if (isVouched) replayableBody()
                }
                assertEquals(sends, ground.sent.size, "$content $isVouched")
                if (sends == 1) assertEquals(StopReason.BodyNotReplayable, ground.finished.single().reason)
            }
        }

    @Test
    fun `a channel that nobody asked for goes again`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { number -> if (number == 1) throw ConnectException() else status(200) }
            assertEquals(200, client.post("http://host/") { setBody(readable()) }.status.value)
            assertEquals(2, ground.sent.size)
        }

    @Test
    fun `what a body throws while it is written is the app's own fault`() =
        runTest {
            val ground = MockEngineFixture(this)
            val failing =
                object : OutgoingContent.WriteChannelContent() {
                    override suspend fun writeTo(channel: ByteWriteChannel): Unit = throw IOException("of the body")
                }
            val client =
                ground.client {
                    (ground.sent.last().body as OutgoingContent.WriteChannelContent).writeTo(
                        io.ktor.utils.io
                            .ByteChannel(),
                    )
                    status(200)
                }
            assertFailsWith<IOException> {
                client.put("http://host/") {
                    setBody(failing)
                    replayableBody()
                }
            }
            assertEquals(1, ground.sent.size)
        }

    @Test
    fun `a streamed response that goes again is closed before the wait`() =
        runTest {
            val ground = MockEngineFixture(this)
            val bodies = ArrayList<io.ktor.utils.io.ByteChannel>()
            val calls = ArrayList<kotlinx.coroutines.Job>()
            val client =
                ground.client { number ->
                    calls += ground.sent.last().executionContext
                    if (number ==
                        1
                    ) {
                        respond(
                            io.ktor.utils.io
                                .ByteChannel()
                                .also { bodies += it },
                            HttpStatusCode.ServiceUnavailable,
                        )
                    } else {
                        status(200)
                    }
                }
            val call = async { client.prepareGet("http://host/").execute { it.status.value } }
            advanceTimeBy(500)
            assertEquals(1, ground.sent.size)
            assertTrue(calls.single().isCompleted)
            assertEquals(200, call.await())
        }

    @Test
    fun `a streamed body reaches the caller whole, however long after the head`() =
        runTest {
            val ground = MockEngineFixture(this)
            val body =
                io.ktor.utils.io
                    .ByteChannel(autoFlush = true)
            val client = ground.client(RetryPolicy.READ) { respond(body) }
            val text = async { client.prepareGet("http://host/").execute { it.bodyAsText() } }
            advanceTimeBy(60_000)
            body.writeFully("whole".encodeToByteArray())
            body.flushAndClose()
            assertEquals("whole", text.await())
        }

    @Test
    fun `an attempt given up in the moment its head comes leaves no half response`() =
        runTest {
            val ground = MockEngineFixture(this)
            ground.connectivity.available()
            val client =
                ground.client { number ->
                    delay(2_000)
                    if (number == 1) ground.connectivity.available(2)
                    respond(bodyOfThisCall(ground))
                }
            assertEquals("whole", client.prepareGet("http://host/").execute { it.bodyAsText() })
            assertEquals(listOf(0L, 2000), ground.sentAt)
            assertEquals(1, ground.heard<RetryEvent.AttemptAbandoned>().size)
        }

    /** As an engine has it: it comes later than its head, and ends with its call. */
    private fun TestScope.bodyOfThisCall(ground: MockEngineFixture): ByteReadChannel {
        val body =
            io.ktor.utils.io
                .ByteChannel(autoFlush = true)
        ground.sent
            .last()
            .executionContext
            .invokeOnCompletion { if (it != null) body.cancel(it) }
        launch {
            delay(100)
            if (!body.isClosedForWrite) {
                body.writeFully("whole".encodeToByteArray())
                body.flushAndClose()
            }
        }
        return body
    }

    private fun readable() =
        object : OutgoingContent.ReadChannelContent() {
            override fun readFrom() = ByteReadChannel("x")
        }

    private fun writable() =
        object : OutgoingContent.WriteChannelContent() {
            override suspend fun writeTo(channel: ByteWriteChannel) = channel.writeFully("x".encodeToByteArray())
        }

    private suspend fun OutgoingContent.handedOut() {
        when (this) {
            is OutgoingContent.ReadChannelContent -> {
                readFrom()
            }

            is OutgoingContent.WriteChannelContent -> {
                writeTo(
                    io.ktor.utils.io
                        .ByteChannel(),
                )
            }

            else -> {
                Unit
            }
        }
    }
}
