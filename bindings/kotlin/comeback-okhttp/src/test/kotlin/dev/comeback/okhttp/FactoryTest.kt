// What only the call factory can: wait without a thread, and give up one attempt without the call.
package dev.comeback.okhttp

import dev.comeback.FailureKind
import dev.comeback.Jitter
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.SystemTime
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import mockwebserver3.SocketEffect.Stall
import okhttp3.Call
import okhttp3.EventListener
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.Response
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.io.InterruptedIOException
import java.net.Socket
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertNotSame
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue

@Timeout(30)
internal class FactoryTest {
    private val clock = EndlessWaits()

    /** Unit, whatever [test] returns: a test method that returns a value is not run. */
    private fun onGround(
        driver: Driver = Driver.FACTORY,
        test: (LoopbackFixture) -> Unit,
    ) = LoopbackFixture(driver = driver).use(test)

    private fun stalled() = MockResponse.Builder().onResponseStart(Stall).build()

    @Test
    fun `five calls that sleep do not hinder a sixth to the same host`() =
        LoopbackFixture(clock = clock, driver = Driver.FACTORY).use { ground ->
            repeat(5) { ground.server.enqueue(status(503)) }
            val calls = ground.calls()
            val sleeping = List(5) { calls.newCall(ground.request()).future() }
            clock.waiting.acquire(5)
            // A wait begins a moment before its attempt's thread is through.
            while (calls.client.dispatcher.runningCallsCount() > 0) Thread.onSpinWait()
            assertEquals(
                200,
                calls
                    .newCall(ground.request())
                    .future()
                    .get(10, TimeUnit.SECONDS)
                    .use { it.code },
            )
            assertTrue(sleeping.none { it.isDone })
            assertTrue(ground.heard<RetryEvent.Finished>().none { it.reason == StopReason.TooManyWaiting })
        }

    @Test
    fun `a thousand waiting calls hold no thread`() =
        LoopbackFixture(clock = clock, driver = Driver.FACTORY).use { ground ->
            val answers = Interceptor { chain -> answer(chain, 503) }
            val calls = ground.calls { addInterceptor(answers) }
            val waiting = List(1_000) { calls.newCall(ground.request()).also { call -> call.future() } }
            clock.waiting.acquire(1_000)
            val threads = calls.client.dispatcher.executorService
            threads.shutdown()
            // It ends when the last of its threads is gone, and every call still waits.
            assertTrue(threads.awaitTermination(10, TimeUnit.SECONDS))
            assertTrue(waiting.none { it.isCanceled() })
            assertEquals(emptyList(), ground.heard<RetryEvent.Finished>())
        }

    private fun answer(
        chain: Interceptor.Chain,
        code: Int,
    ) = Response
        .Builder()
        .request(chain.request())
        .protocol(Protocol.HTTP_1_1)
        .code(code)
        .message("")
        .build()

    @ParameterizedTest
    @EnumSource(Driver::class, names = ["FACTORY", "ENQUEUED"])
    fun `an attempt that takes longer than its timeout is given up, and the call goes on`(driver: Driver) =
        onGround(driver) { ground ->
            ground.server.enqueue(stalled())
            val policy = RetryPolicy { attemptTimeoutMillis = 1_000 }
            val call = ground.calls(policy).newCall(ground.request())
            call.execute().use { response ->
                assertEquals(200, response.code)
                assertEquals(
                    FailureKind.ATTEMPT_TIMEOUT,
                    response.retryReport!!
                        .attempts
                        .single()
                        .failure,
                )
            }
            assertFalse(call.isCanceled())
            assertEquals(2, ground.server.requestCount)
        }

    @Test
    fun `an attempt's timeout does not make a POST repeatable`() =
        onGround { ground ->
            ground.server.enqueue(stalled())
            val failure =
                assertFailsWith<InterruptedIOException> { ground.calls(RetryPolicy { attemptTimeoutMillis = 1_000 }).send(ground.post()) }
            assertEquals("timeout", failure.message)
            assertEquals(StopReason.NotRepeatable, failure.retryReport!!.reason)
            // None at all, if this machine was too slow for it.
            assertTrue(ground.server.requestCount <= 1)
        }

    @ParameterizedTest
    @EnumSource(Driver::class, names = ["FACTORY", "ENQUEUED"])
    fun `a GET that hangs on a network that is gone is begun anew on the next, over a fresh connection`(driver: Driver) =
        onGround(driver) { ground ->
            ground.connectivity.available(handle = 1)
            ground.server.enqueue(stalled())
            val response = CompletableFuture.supplyAsync { ground.calls().send(ground.request()) }
            val first = ground.server.takeRequest()
            ground.connectivity.available(handle = 2)
            response.get(10, TimeUnit.SECONDS).use { assertEquals(200, it.code) }
            assertEquals(1, ground.heard<RetryEvent.AttemptAbandoned>().size)
            assertEquals(0, ground.heard<RetryEvent.AttemptFailed>().size)
            assertEquals(2, ground.heard<RetryEvent.Finished>().single().counted)
            assertEquals(listOf(0, 1), listOf(first.connectionIndex, ground.server.takeRequest().connectionIndex))
        }

    @Test
    fun `a POST that may have been sent is kept, whatever the network does`() =
        onGround { ground ->
            ground.connectivity.available(handle = 1)
            val isMoved = CountDownLatch(1)
            ground.server.dispatcher =
                object : mockwebserver3.Dispatcher() {
                    override fun dispatch(request: mockwebserver3.RecordedRequest): MockResponse {
                        isMoved.await(10, TimeUnit.SECONDS)
                        return MockResponse(body = "the one order")
                    }
                }
            val response = CompletableFuture.supplyAsync { ground.calls().send(ground.post()) }
            ground.server.takeRequest()
            ground.connectivity.available(handle = 2)
            val asked = CountDownLatch(1)
            // What was scheduled at the change is over by then.
            ground.time.schedule(ground.time.nanos()) { asked.countDown() }
            asked.await()
            isMoved.countDown()
            response.get(10, TimeUnit.SECONDS).use { assertEquals("the one order", it.body.string()) }
            assertEquals(0, ground.heard<RetryEvent.AttemptAbandoned>().size)
            assertEquals(1, ground.server.requestCount)
        }

    /** The first connect hangs until its socket is closed, as on a network that carries nothing. */
    private class HangingOnce : UnconnectedSockets() {
        val hangs = CountDownLatch(1)
        private val made = AtomicInteger()

        override fun createSocket(): Socket =
            if (made.getAndIncrement() > 0) {
                Socket()
            } else {
                object : Socket() {
                    private val closed = CountDownLatch(1)

                    override fun connect(
                        endpoint: java.net.SocketAddress?,
                        timeout: Int,
                    ) {
                        hangs.countDown()
                        closed.await()
                        throw java.net.SocketException("Socket closed")
                    }

                    override fun close() {
                        closed.countDown()
                        super.close()
                    }
                }
            }
    }

    @ParameterizedTest
    @EnumSource(Driver::class, names = ["FACTORY", "ENQUEUED"])
    fun `a POST that still connects has sent nothing, and is begun anew uncounted`(driver: Driver) =
        onGround(driver) { ground ->
            ground.connectivity.available(handle = 1)
            val sockets = HangingOnce()
            val response = CompletableFuture.supplyAsync { ground.calls { socketFactory(sockets) }.send(ground.post()) }
            sockets.hangs.await()
            ground.connectivity.available(handle = 2)
            response.get(10, TimeUnit.SECONDS).use { assertEquals(200, it.code) }
            assertEquals(1, ground.heard<RetryEvent.AttemptAbandoned>().size)
            assertEquals(1, ground.heard<RetryEvent.Finished>().single().counted)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `an interceptor of the app's that sends by another client proves nothing to a change of the network`() =
        onGround { ground ->
            ground.connectivity.available(handle = 1)
            val isMoved = CountDownLatch(1)
            val isSending = CountDownLatch(1)
            val elsewhere =
                Interceptor { chain ->
                    isSending.countDown()
                    isMoved.await(10, TimeUnit.SECONDS)
                    answer(chain, 200)
                }
            val response = CompletableFuture.supplyAsync { ground.calls { addInterceptor(elsewhere) }.send(ground.post()) }
            isSending.await()
            ground.connectivity.available(handle = 2)
            val asked = CountDownLatch(1)
            ground.time.schedule(ground.time.nanos()) { asked.countDown() }
            asked.await()
            isMoved.countDown()
            response.get(10, TimeUnit.SECONDS).close()
            assertEquals(0, ground.heard<RetryEvent.AttemptAbandoned>().size)
        }

    @Test
    fun `a flapping link begins an attempt anew once a second at most`() =
        LoopbackFixture(clock = SystemTime, driver = Driver.ENQUEUED).use { ground ->
            ground.connectivity.available(handle = 1)
            repeat(3) { ground.server.enqueue(stalled()) }
            val response = CompletableFuture.supplyAsync { ground.calls().send(ground.request()) }
            ground.server.takeRequest()
            val began = System.nanoTime()
            ground.connectivity.available(handle = 2)
            ground.server.takeRequest()
            ground.connectivity.available(handle = 3)
            ground.server.takeRequest()
            assertTrue(System.nanoTime() - began >= TimeUnit.MILLISECONDS.toNanos(1_000))
            ground.connectivity.available(handle = 4)
            response.get(10, TimeUnit.SECONDS).use { assertEquals(200, it.code) }
            assertEquals(4, ground.heard<RetryEvent.Finished>().single().counted)
        }

    @Test
    fun `around a client that has Comeback itself, one of the two acts`() =
        onGround { ground ->
            repeat(20) { ground.server.enqueue(status(503)) }
            val client = ground.client(RetryPolicy.READ)
            val calls = ground.comeback.callFactory(client)
            assertEquals(503, calls.outcomeOf(ground.request()))
            assertEquals(4, ground.server.requestCount)
            assertEquals(1, ground.heard<RetryEvent.Finished>().size)
            assertTrue(ground.received().none { request -> request.headers.names().any { it.startsWith("Comeback") } })
        }

    @Test
    fun `a call is executed once, and its clone is another call`() =
        onGround { ground ->
            val call = ground.calls().newCall(ground.request())
            assertFalse(call.isExecuted())
            call.execute().close()
            assertTrue(call.isExecuted())
            assertEquals("Already Executed", assertFailsWith<IllegalStateException> { call.execute() }.message)
            assertEquals("Already Executed", assertFailsWith<IllegalStateException> { call.future() }.message)
            val clone = call.clone()
            assertNotSame(call, clone)
            assertFalse(clone.isExecuted())
            assertSame(call.request(), clone.request())
            clone.execute().close()
        }

    @Test
    fun `a call that is cancelled before it starts fails as OkHttp's does`() =
        onGround { ground ->
            val call = ground.calls().newCall(ground.request())
            call.cancel()
            assertTrue(call.isCanceled())
            assertEquals("Canceled", assertFailsWith<java.io.IOException> { call.execute() }.message)
            assertEquals(0, ground.server.requestCount)
        }

    @ParameterizedTest
    @EnumSource(Driver::class)
    fun `a call that is cancelled before it runs tells its listener once, as OkHttp's own do`(driver: Driver): Unit =
        LoopbackFixture(driver = driver).use { ground ->
            val heard = CopyOnWriteArrayList<String>()
            val listener =
                object : EventListener() {
                    override fun canceled(call: Call) {
                        heard += "canceled"
                    }

                    override fun callFailed(
                        call: Call,
                        ioe: java.io.IOException,
                    ) {
                        heard += "callFailed"
                    }
                }
            val call = ground.calls().newCall(ground.request())
            call.addEventListener(listener)
            call.cancel()
            assertEquals(listOf("canceled"), heard)
            assertEquals("Canceled", assertFailsWith<java.io.IOException> { call.execute() }.message)
            call.cancel()
            assertEquals(listOf("canceled", "callFailed"), heard)
        }

    @Test
    fun `a cancel in a wait is heard by the call's own listener, and not by the client's, which has no call then`(): Unit =
        LoopbackFixture(clock = clock, driver = Driver.FACTORY).use { ground ->
            ground.server.enqueue(status(503))
            val heard = CopyOnWriteArrayList<String>()

            fun listener(name: String) =
                object : EventListener() {
                    override fun canceled(call: Call) {
                        heard += name
                    }
                }
            val call = ground.calls { eventListener(listener("the client's")) }.newCall(ground.request())
            call.addEventListener(listener("the call's"))
            val future = call.future()
            clock.waiting.acquire()
            call.cancel()
            assertFailsWith<ExecutionException> { future.get(10, TimeUnit.SECONDS) }
            assertEquals(listOf("the call's"), heard.toList())
        }

    @Test
    fun `a cancel after the response head ends the body`(): Unit =
        onGround { ground ->
            ground.server.enqueue(
                MockResponse
                    .Builder()
                    .body("one, two, three")
                    .throttleBody(5, 10, TimeUnit.SECONDS)
                    .build(),
            )
            val call = ground.calls().newCall(ground.request())
            call.execute().use { response ->
                call.cancel()
                assertFailsWith<java.io.IOException> { response.body.string() }
            }
        }

    @Test
    fun `the client's timeout covers the body too`() =
        onGround { ground ->
            ground.server.enqueue(
                MockResponse
                    .Builder()
                    .body("one, two, three")
                    .throttleBody(5, 10, TimeUnit.SECONDS)
                    .build(),
            )
            val call = ground.calls().newCall(ground.request())
            call.timeout().timeout(700, TimeUnit.MILLISECONDS)
            call.execute().use { response ->
                assertEquals("timeout", assertFailsWith<InterruptedIOException> { response.body.string() }.message)
            }
        }

    private class Mark

    @Test
    fun `tags of request and call are on every attempt`() =
        onGround { ground ->
            ground.server.enqueue(status(503))
            val seen = ArrayList<Pair<String?, Mark?>>()
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        seen += chain.request().tag(String::class.java) to chain.call().tag(Mark::class)
                        chain.proceed(chain.request())
                    }
                }
            val call = calls.newCall(ground.request { tag(String::class.java, "the request's") })
            assertNull(call.tag(Mark::class))
            val mark = call.tag(Mark::class) { Mark() }
            assertSame(mark, call.tag(Mark::class) { Mark() })
            assertEquals("the request's", call.tag(String::class.java))
            call.execute().close()
            assertEquals(List<Pair<String?, Mark?>>(2) { "the request's" to mark }, seen)
        }

    @Test
    fun `a listener that is added to the call hears every attempt`() =
        onGround { ground ->
            ground.server.enqueue(status(503))
            val heard = ArrayList<String>()
            val call = ground.calls().newCall(ground.request())
            call.addEventListener(
                object : EventListener() {
                    override fun callStart(call: Call) {
                        heard += "start"
                    }

                    override fun callEnd(call: Call) {
                        heard += "end"
                    }
                },
            )
            call.execute().use { it.body.string() }
            assertEquals(listOf("start", "end", "start", "end"), heard)
        }

    @Test
    fun `a client that was shut down during the wait ends the call`() {
        lateinit var client: OkHttpClient
        LoopbackFixture(driver = Driver.ENQUEUED).use { ground ->
            ground.server.enqueue(status(503))
            val calls = ground.calls(RetryPolicy { jitter = Jitter.NONE })
            client = calls.client
            ground.time.at(1) { client.dispatcher.executorService.shutdown() }
            assertEquals("executor rejected", assertFailsWith<InterruptedIOException> { calls.send(ground.request()) }.message)
            assertEquals(StopReason.Permanent, ground.heard<RetryEvent.Finished>().single().reason)
        }
    }

    @Test
    fun `an attempt's number is on its request, for listeners to which each is a call`() =
        LoopbackFixture(driver = Driver.FACTORY).use { ground ->
            repeat(2) { ground.server.enqueue(status(503)) }
            val heard = CopyOnWriteArrayList<String>()
            val listener =
                object : EventListener() {
                    override fun callStart(call: Call) {
                        heard += "start ${call.request().attemptNumber}"
                    }

                    override fun callEnd(call: Call) {
                        heard += "end ${call.request().attemptNumber}"
                    }
                }
            val request = ground.request()
            val calls = ground.calls { eventListener(listener) }
            val delivered = calls.send(request).use { it.request }
            assertEquals(listOf("start 1", "end 1", "start 2", "end 2", "start 3", "end 3"), heard)
            assertEquals(3, delivered.attemptNumber)
            heard.clear()
            calls.send(delivered).close()
            assertEquals(listOf("start 1", "end 1"), heard)
        }
}
