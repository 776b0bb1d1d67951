// A body that is read within the attempt: whoever gets an answer gets all of it.
package dev.comeback.okhttp

import dev.comeback.FailureKind
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import okhttp3.Call
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okio.buffer
import okio.sink
import okio.source
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.ValueSource
import java.io.IOException
import java.net.Socket
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull

@Timeout(60)
@ParameterizedClass
@EnumSource(Driver::class)
internal class ReadBodyTest(
    private val driver: Driver,
) {
    /** Answers with [BODY]; the first request of a path `/n` with only n bytes of it, and then, after [hold], the connection ends. */
    private class HalfAnswers(
        private val isChunked: Boolean = false,
        private val type: String = "text/plain",
        private val hold: CountDownLatch? = null,
    ) : RawServer() {
        private val asked = ConcurrentHashMap<String, Boolean>()

        override fun serve(
            number: Int,
            socket: Socket,
        ) {
            val source = socket.source().buffer()
            val sink = socket.sink().buffer()
            while (true) {
                val head = generateSequence { source.readUtf8Line() }.takeWhile { it.isNotEmpty() }.toList()
                if (head.isEmpty()) return
                heads.incrementAndGet()
                val path = head[0].split(' ')[1]
                source.skip(head.firstNotNullOfOrNull { it.lowercase().substringAfter("content-length: ", "").toLongOrNull() } ?: 0)
                val isWhole = asked.put(path, true) != null
                sink.writeUtf8("HTTP/1.1 200 OK\r\nContent-Type: $type\r\n")
                sink.writeUtf8(if (isChunked) "Transfer-Encoding: chunked\r\n\r\n" else "Content-Length: ${BODY.length}\r\n\r\n")
                if (isChunked) sink.writeUtf8("${BODY.length.toString(16)}\r\n")
                sink.writeUtf8(BODY.take(if (isWhole) BODY.length else path.drop(1).toInt())).flush()
                hold?.await()
                if (!isWhole) return
                if (isChunked) sink.writeUtf8("\r\n0\r\n\r\n")
                sink.flush()
            }
        }

        fun request(bytes: Int): Request = Request.Builder().url("http://127.0.0.1:$port/$bytes").build()
    }

    private fun HalfAnswers.serving(test: (LoopbackFixture) -> Unit) {
        start()
        use { LoopbackFixture(driver = driver).use(test) }
    }

    private fun reading(
        bytes: Int = 1 shl 20,
        attempts: Int = 4,
    ) = RetryPolicy {
        readBody = bytes
        maxAttempts = attempts
    }

    private fun Call.Factory.bodyOf(request: Request) = send(request).use { it.body.string() }

    @ParameterizedTest
    @ValueSource(booleans = [true, false])
    fun `an answer that breaks off anywhere is asked for once more`(isChunked: Boolean) {
        val server = HalfAnswers(isChunked)
        server.serving { ground ->
            val calls = ground.calls(reading())
            for (bytes in 0 until BODY.length step STEP) assertEquals(BODY, calls.bodyOf(server.request(bytes)))
            assertEquals(ground.heard<RetryEvent.Finished>().size * 2, server.heads.get())
            assertEquals(
                setOf<FailureKind?>(FailureKind.UNEXPECTED_END),
                ground.heard<RetryEvent.AttemptFailed>().map { it.failure }.toSet(),
            )
        }
    }

    @Test
    fun `without it the one who reads finds out`() {
        val server = HalfAnswers()
        server.serving { ground ->
            assertFailsWith<IOException> { ground.calls().bodyOf(server.request(100)) }
            assertEquals(1, server.heads.get())
        }
    }

    @Test
    fun `a POST without a key whose answer breaks off has arrived and does not go again`() {
        val server = HalfAnswers()
        server.serving { ground ->
            val post =
                server
                    .request(100)
                    .newBuilder()
                    .post("a".toRequestBody())
                    .build()
            val failure = assertFailsWith<IOException> { ground.calls(reading()).send(post) }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            assertEquals(true, failure.retryReport!!.mayHaveArrived)
            assertEquals(1, server.heads.get())
        }
    }

    @Test
    fun `a request's own policy says how much is read`() {
        val server = HalfAnswers()
        server.serving { ground ->
            val request =
                server
                    .request(100)
                    .newBuilder()
                    .retryPolicy(reading())
                    .build()
            assertEquals(BODY, ground.calls().bodyOf(request))
        }
    }

    @Test
    fun `beyond its length a body is handed on unread`() {
        val hold = CountDownLatch(1)
        val server = HalfAnswers(hold = hold)
        server.serving { ground ->
            ground.calls(reading(50)).send(server.request(100)).use { response ->
                // It is here although the server holds the rest back.
                assertNull(response.retryReport)
                hold.countDown()
                assertEquals(BODY.take(100), response.body.source().readUtf8(100))
                assertFailsWith<IOException> { response.body.string() }
            }
        }
    }

    @Test
    fun `an event stream is never read`() {
        val hold = CountDownLatch(1)
        val server = HalfAnswers(type = "text/event-stream; charset=utf-8", hold = hold)
        server.serving { ground ->
            ground.calls(reading()).send(server.request(5)).use { response ->
                assertEquals(BODY.take(5), response.body.source().readUtf8(5))
                hold.countDown()
            }
        }
    }

    @Test
    fun `what breaks off each time ends in its own exception`() {
        val server = HalfAnswers()
        server.serving { ground ->
            val failure = assertFailsWith<IOException> { ground.calls(reading(attempts = 1)).send(server.request(7)) }
            assertEquals(StopReason.Attempts, failure.retryReport!!.reason)
        }
    }

    private companion object {
        val BODY = "0123456789abcdefghij".repeat(1_000)

        /** Every byte, `-Dcomeback.halfBodies.step=1`, takes minutes. */
        val STEP: Int = Integer.getInteger("comeback.halfBodies.step", 37)
    }
}
