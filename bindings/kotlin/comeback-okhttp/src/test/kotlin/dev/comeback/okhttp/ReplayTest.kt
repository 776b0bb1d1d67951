// A body that says it can be written again is believed only as far as its bytes are the same.
package dev.comeback.okhttp

import dev.comeback.RetryEvent
import dev.comeback.StopReason
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.Call
import okhttp3.Connection
import okhttp3.EventListener
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.Protocol
import okhttp3.RequestBody
import okio.BufferedSink
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.Arguments
import org.junit.jupiter.params.provider.Arguments.arguments
import org.junit.jupiter.params.provider.CsvSource
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.MethodSource
import java.io.IOException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertSame

@ParameterizedClass
@EnumSource(Driver::class)
internal class ReplayTest(
    private val driver: Driver,
) {
    /** Writes [first], and from the second time on [later]. */
    private class Changing(
        private val first: String,
        private val later: String,
        private val length: Length = Length.UNKNOWN,
    ) : RequestBody() {
        val written = AtomicInteger()

        override fun contentType(): MediaType? = null

        override fun contentLength(): Long =
            when (length) {
                Length.UNKNOWN -> -1
                Length.OF_THE_FIRST -> first.length.toLong()
                Length.OF_EACH -> (if (written.get() == 0) first else later).length.toLong()
            }

        override fun writeTo(sink: BufferedSink) {
            sink.writeUtf8(if (written.getAndIncrement() == 0) first else later)
        }
    }

    internal enum class Length { UNKNOWN, OF_THE_FIRST, OF_EACH }

    private fun ground(http2: Boolean) = LoopbackFixture({ if (http2) protocols = listOf(Protocol.H2_PRIOR_KNOWLEDGE) }, driver = driver)

    private fun LoopbackFixture.calls(http2: Boolean) = calls { if (http2) protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE)) }

    /** The requests that arrived whole. */
    private fun LoopbackFixture.whole() = received().filter { it.failure == null }

    @ParameterizedTest
    @MethodSource("differences")
    fun `a replay that differs never reaches the server whole`(
        later: String,
        length: Length,
        http2: Boolean,
    ) = ground(http2).use { ground ->
        ground.server.enqueue(status(503))
        val body = Changing(FIRST, later, length)
        val failure = assertFailsWith<IOException> { ground.calls(http2).send(ground.request("PUT", body)) }
        assertEquals(StopReason.BodyNotReplayable, failure.retryReport!!.reason)
        assertEquals(true, failure.retryReport!!.mayHaveArrived)
        assertEquals(2, failure.retryReport!!.counted)
        assertEquals(listOf(503, null), failure.retryReport!!.attempts.map { it.status })
        assertEquals(listOf(FIRST), ground.whole().map { it.body?.utf8() })
        // The connection is not left in the middle of a request.
        assertEquals(200, ground.calls(http2).outcomeOf(ground.request()))
    }

    @ParameterizedTest
    @CsvSource("UNKNOWN,false", "UNKNOWN,true", "OF_EACH,false", "OF_EACH,true")
    fun `a replay that is the same arrives whole`(
        length: Length,
        http2: Boolean,
    ) = ground(http2).use { ground ->
        repeat(2) { ground.server.enqueue(status(503)) }
        val long = "0123456789".repeat(10_000)
        assertEquals(200, ground.calls(http2).outcomeOf(ground.request("PUT", Changing(long, long, length))))
        assertEquals(listOf(long, long, long), ground.received().map { it.body?.utf8() })
    }

    @Test
    fun `an empty body is the same as an empty body`() =
        ground(false).use { ground ->
            ground.server.enqueue(status(503))
            assertEquals(200, ground.calls().outcomeOf(ground.request("PUT", Changing("", ""))))
            assertEquals(2, ground.server.requestCount)
        }

    /** Writes the beginning, and then breaks the connection under itself the first time. */
    private class BrokenOff(
        private val later: String,
    ) : RequestBody() {
        lateinit var breakConnection: () -> Unit
        private val written = AtomicInteger()

        override fun contentType(): MediaType? = null

        override fun writeTo(sink: BufferedSink) {
            if (written.getAndIncrement() > 0) {
                sink.writeUtf8(later)
                return
            }
            sink.writeUtf8(BEGINNING).flush()
            breakConnection()
            repeat(100) { sink.writeUtf8("more".repeat(10_000)).flush() }
        }
    }

    @ParameterizedTest
    @CsvSource("true", "false")
    fun `what an earlier attempt wrote only the beginning of is compared as far as that goes`(isSame: Boolean) =
        ground(false).use { ground ->
            val later = (if (isSame) BEGINNING else BEGINNING.reversed()) + "more".repeat(1_100_000)
            val body = BrokenOff(later)
            val calls =
                ground.calls {
                    eventListener(
                        object : EventListener() {
                            override fun connectionAcquired(
                                call: Call,
                                connection: Connection,
                            ) {
                                body.breakConnection = { connection.socket().close() }
                            }
                        },
                    )
                }
            val request = ground.request("PUT", body)
            if (isSame) {
                assertEquals(200, calls.outcomeOf(request))
                assertEquals(listOf(later.length.toLong()), ground.whole().map { it.body?.size?.toLong() })
            } else {
                val failure = assertFailsWith<IOException> { calls.send(request) }
                assertEquals(StopReason.BodyNotReplayable, failure.retryReport!!.reason)
                assertEquals(emptyList(), ground.whole())
            }
        }

    @Test
    fun `what the client sends again by itself within an attempt is as it would be without us`() =
        ground(false).use { ground ->
            ground.server.enqueue(status(401))
            val calls =
                ground.calls {
                    authenticator { _, response ->
                        response.request
                            .newBuilder()
                            .header("Authorization", "fresh")
                            .build()
                    }
                }
            assertEquals(200, calls.outcomeOf(ground.post(Changing(FIRST, "another nonce"))))
            assertEquals(listOf(FIRST, "another nonce"), ground.received().map { it.body?.utf8() })
        }

    @Test
    fun `what is flushed in the first attempt is on its way before the body has ended`() =
        ground(false).use { ground ->
            val server = CountingBytes().also { it.start() }
            server.use {
                val body =
                    object : RequestBody() {
                        override fun contentType(): MediaType? = null

                        override fun writeTo(sink: BufferedSink) {
                            sink.writeUtf8("first").flush()
                            server.awaitBytesAfterHead("5\r\nfirst\r\n".length)
                            sink.writeUtf8("second")
                        }
                    }
                val request =
                    ground
                        .request("PUT", body)
                        .newBuilder()
                        .url("http://127.0.0.1:${server.port}/")
                        .build()
                assertEquals(200, ground.calls().outcomeOf(request))
            }
        }

    @Test
    fun `interceptors of either kind are handed the app's own body`() =
        ground(false).use { ground ->
            val seen = CopyOnWriteArrayList<RequestBody?>()
            val look =
                Interceptor { chain ->
                    seen += chain.request().body
                    chain.proceed(chain.request()).also { seen += it.request.body }
                }
            val body = Changing(FIRST, FIRST)
            val calls =
                ground.calls {
                    addInterceptor(look)
                    addNetworkInterceptor(look)
                }
            ground.server.enqueue(status(503))
            calls.send(ground.request("PUT", body)).use { seen += it.request.body }
            assertEquals(9, seen.size)
            seen.forEach { assertSame<RequestBody?>(body, it) }
        }

    @Test
    fun `a body that an interceptor makes anew each time is its own affair`() =
        ground(false).use { ground ->
            ground.server.enqueue(status(503))
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        val request = chain.request()
                        chain.proceed(request.newBuilder().method(request.method, Changing("signed", "signed")).build())
                    }
                }
            assertEquals(200, calls.outcomeOf(ground.request("PUT", Changing(FIRST, FIRST))))
            assertEquals(2, ground.heard<RetryEvent.Finished>().single().counted)
        }

    internal companion object {
        private const val FIRST = "amount=100&currency=EUR"
        private const val BEGINNING = "the beginning"

        @JvmStatic
        fun differences(): List<Arguments> =
            listOf("", FIRST.reversed(), FIRST.dropLast(1), "$FIRST&more").flatMap { later ->
                Length.entries.flatMap { length -> listOf(false, true).map { http2 -> arguments(later, length, http2) } }
            }
    }
}
