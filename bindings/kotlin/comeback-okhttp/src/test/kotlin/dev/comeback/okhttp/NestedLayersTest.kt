// A layer further in stands down, and tells the one that acts of every request it makes.
package dev.comeback.okhttp

import dev.comeback.Repeat
import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.OuterAttempt
import dev.comeback.retryReport
import okhttp3.Call
import okhttp3.Dispatcher
import okhttp3.EventListener
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.util.concurrent.AbstractExecutorService
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals

@ParameterizedClass
@EnumSource(Driver::class)
internal class NestedLayersTest(
    private val driver: Driver,
) {
    private fun ground() = LoopbackFixture(driver = driver)

    private fun <T> OuterAttempt.block(action: () -> T): T {
        OuterAttempt.onThisThread = this
        try {
            return action()
        } finally {
            OuterAttempt.onThisThread = null
        }
    }

    /** How a call inside a block comes to know of it. */
    enum class Way { THREAD, ENQUEUED, REQUEST_TAG }

    private fun Way.send(
        outer: OuterAttempt,
        calls: Call.Factory,
        request: Request,
    ): Any =
        when (this) {
            Way.THREAD -> outer.block { calls.outcomeOf(request) }
            Way.ENQUEUED -> outer.block { calls.newCall(request).future() }.outcome()
            Way.REQUEST_TAG -> calls.outcomeOf(request.newBuilder().tag(OuterAttempt::class.java, outer).build())
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a call inside an outer attempt goes once and is told, with what the server said of waiting`(way: Way) =
        ground().use { ground ->
            ground.server.enqueue(status(503, "Retry-After" to "7"))
            val outer = OuterAttempt()
            assertEquals(503, way.send(outer, ground.calls(), ground.post()))
            assertEquals(1, ground.server.requestCount)
            val told = outer.told.single()
            assertEquals(false, told.sentNothing)
            assertEquals(listOf("7"), told.retryAfter)
            assertEquals(emptyList(), ground.events)
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a call that reached nobody is told so`(way: Way) =
        ground().use { ground ->
            val refused = LoopbackFixture().use { it.url() }
            val outer = OuterAttempt()
            way.send(
                outer,
                ground.calls(),
                Request
                    .Builder()
                    .url(refused)
                    .post("".toRequestBody())
                    .build(),
            )
            assertEquals(listOf(true), outer.told.map { it.sentNothing })
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `a request without a policy is told too`(way: Way) =
        ground().use { ground ->
            val outer = OuterAttempt()
            assertEquals(200, way.send(outer, ground.calls(RetryPolicy.OFF), ground.request()))
            assertEquals(1, outer.told.size)
        }

    @ParameterizedTest
    @EnumSource(Way::class)
    fun `the client of a layer that stands down does not send by itself either`(way: Way) =
        ground().use { ground ->
            repeat(3) { ground.server.enqueue(status(503, "Retry-After" to "0")) }
            assertEquals(503, way.send(OuterAttempt(), ground.calls(), ground.request()))
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a call that was only enqueued may have gone out`() =
        ground().use { ground ->
            val never =
                object : AbstractExecutorService() {
                    override fun execute(command: Runnable) = Unit

                    override fun shutdown() = Unit

                    override fun shutdownNow() = emptyList<Runnable>()

                    override fun isShutdown() = false

                    override fun isTerminated() = false

                    override fun awaitTermination(
                        timeout: Long,
                        unit: TimeUnit,
                    ) = true
                }
            val outer = OuterAttempt()
            outer.block { ground.calls { dispatcher(Dispatcher(never)) }.newCall(ground.post()).future() }
            assertEquals(listOf(false), outer.told.map { it.sentNothing })
        }

    @Test
    fun `a call outside of every block is nobody's`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            val outer = OuterAttempt()
            outer.block { }
            assertEquals(
                200,
                ground
                    .calls()
                    .newCall(ground.request())
                    .future()
                    .outcome(),
            )
            assertEquals(emptyList<InnerRequest>(), outer.told)
        }

    @Test
    fun `the outer of two Comebacks on one client acts, and the inner one's word on repeating counts`() =
        ground().use { ground ->
            ground.server.enqueue(status(503))
            val calls = ground.calls { comeback(ground.comeback, RetryPolicy { repeat = Repeat.NEVER }) }
            calls.send(ground.request()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(1, ground.server.requestCount)
            assertEquals(1, ground.heard<RetryEvent.Finished>().size)
        }

    @Test
    fun `what an interceptor sends by another client with Comeback is judged with the request itself`() =
        ground().use { ground ->
            ground.server.enqueue(status(200))
            ground.server.enqueue(status(503))
            val other = ground.client()
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        other.newCall(ground.post()).execute().close()
                        chain.proceed(chain.request())
                    }
                }
            calls.send(ground.request()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(listOf("POST", "GET"), ground.received().map { it.method })
        }

    @Test
    fun `what an interceptor enqueues on another client with Comeback is judged with the request itself`() =
        ground().use { ground ->
            ground.server.enqueue(status(200))
            ground.server.enqueue(status(503))
            val other = ground.client()
            val calls =
                ground.calls {
                    addInterceptor { chain ->
                        other
                            .newCall(ground.post())
                            .future()
                            .get()
                            .close()
                        chain.proceed(chain.request())
                    }
                }
            calls.send(ground.request()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(listOf("POST", "GET"), ground.received().map { it.method })
        }

    @Test
    fun `an app's own event listeners hear what they would hear without us`() =
        ground().use { ground ->
            val heard = CopyOnWriteArrayList<String>()
            val listener =
                object : EventListener() {
                    override fun callStart(call: Call) {
                        heard += "start"
                    }

                    override fun callEnd(call: Call) {
                        heard += "end"
                    }
                }
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .eventListener(listener)
                        .comeback(ground.comeback)
                        .build(),
                )
            val outer = OuterAttempt()
            assertEquals(200, outer.block { client.newCall(ground.request()).future() }.outcome())
            assertEquals(200, client.newCall(ground.request()).future().outcome())
            assertEquals(1, outer.told.size)
            assertEquals(listOf("start", "end", "start", "end"), heard)
        }
}
