// A call as a coroutine awaits it.
package dev.comeback.okhttp

import dev.comeback.CancelKind
import dev.comeback.RetryEvent
import dev.comeback.StopReason
import dev.comeback.retryReport
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.runBlocking
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.CloseSocket
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Response
import okhttp3.ResponseBody
import okhttp3.ResponseBody.Companion.asResponseBody
import okio.Buffer
import okio.BufferedSource
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import java.io.IOException
import java.util.concurrent.CompletableFuture
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotSame
import kotlin.test.assertTrue

@Timeout(30)
internal class AwaitTest {
    private val clock = EndlessWaits()

    @Test
    fun `the response comes as the call brings it`() =
        LoopbackFixture(driver = Driver.FACTORY).use { ground ->
            ground.server.enqueue(status(503))
            val response = runBlocking { ground.calls().newCall(ground.request()).await() }
            response.use {
                assertEquals(
                    503,
                    it.retryReport!!
                        .attempts
                        .single()
                        .status,
                )
            }
        }

    @Test
    fun `a failure comes with its report`() =
        LoopbackFixture(driver = Driver.FACTORY).use { ground ->
            ground.server.enqueue(MockResponse.Builder().onResponseStart(CloseSocket()).build())
            val failure = assertFailsWith<IOException> { runBlocking { ground.calls().newCall(ground.post()).await() } }
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
        }

    @Test
    fun `cancelling the coroutine ends a wait, and with it the call`() =
        LoopbackFixture(clock = clock, driver = Driver.FACTORY).use { ground ->
            ground.server.enqueue(status(503))
            val call = ground.calls().newCall(ground.request())
            runBlocking {
                val waiting = async(Dispatchers.Default) { call.await() }
                clock.waiting.acquire()
                waiting.cancel()
                assertFailsWith<CancellationException> { waiting.await() }
            }
            assertTrue(call.isCanceled())
            while (ground.heard<RetryEvent.Finished>().isEmpty()) Thread.sleep(1)
            assertEquals(StopReason.Cancelled(CancelKind.CALLER), ground.heard<RetryEvent.Finished>().single().reason)
        }

    /** Hands its callback out, to be called when it is too late. */
    private class LateCall(
        private val call: Call,
    ) : Call by call {
        lateinit var callback: Callback

        override fun enqueue(responseCallback: Callback) {
            callback = responseCallback
        }
    }

    private class FollowedBody : ResponseBody() {
        private val body = Buffer().asResponseBody()
        val closedOn = CompletableFuture<Thread>()

        override fun contentType() = body.contentType()

        override fun contentLength() = body.contentLength()

        override fun source(): BufferedSource = body.source()

        override fun close() {
            closedOn.complete(Thread.currentThread())
        }
    }

    private fun late(ground: LoopbackFixture): Pair<FollowedBody, Response> {
        val response = ground.calls().send(ground.request())
        response.close()
        val body = FollowedBody()
        return body to response.newBuilder().body(body).build()
    }

    @Test
    fun `a response that comes after the cancel is closed`() =
        LoopbackFixture(driver = Driver.FACTORY).use { ground ->
            val call = LateCall(ground.calls().newCall(ground.request()))
            val (body, response) = late(ground)
            runBlocking {
                val waiting = async(start = CoroutineStart.UNDISPATCHED) { call.await() }
                waiting.cancel()
                call.callback.onResponse(call, response)
            }
            assertNotSame(Thread.currentThread(), body.closedOn.get())
        }

    @Test
    fun `a response that a cancel meets before anybody has it is not closed on the thread that cancels`() =
        LoopbackFixture(driver = Driver.FACTORY).use { ground ->
            val call = LateCall(ground.calls().newCall(ground.request()))
            val (body, response) = late(ground)
            runBlocking {
                val waiting = async(start = CoroutineStart.UNDISPATCHED) { call.await() }
                call.callback.onResponse(call, response)
                waiting.cancel()
            }
            assertNotSame(Thread.currentThread(), body.closedOn.get())
        }
}
