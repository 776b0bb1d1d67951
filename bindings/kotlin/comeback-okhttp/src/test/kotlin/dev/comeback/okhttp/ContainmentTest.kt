// Nothing of ours but an IOException leaves the interceptor, and nothing of ours fails a request that would have succeeded.
package dev.comeback.okhttp

import dev.comeback.Connectivity
import dev.comeback.NetworkSnapshot
import dev.comeback.OutcomeClass
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.Subscription
import dev.comeback.okhttp.internal.guarded
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Response
import okhttp3.ResponseBody
import okhttp3.ResponseBody.Companion.toResponseBody
import okio.BufferedSource
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.time.Duration
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs

@ParameterizedClass
@EnumSource(Driver::class)
internal class ContainmentTest(
    private val driver: Driver,
) {
    private class Fault : Error("not an exception one catches")

    @Test
    fun `a listener that throws changes nothing`() =
        LoopbackFixture(driver = driver, configureComeback = { listener = RetryListener { throw Fault() } }).use { ground ->
            ground.server.enqueue(status(503))
            assertEquals(200, ground.calls().outcomeOf(ground.request()))
        }

    @Test
    fun `a listener that calls itself for ever changes nothing`() {
        fun forEver(n: Int): Int = forEver(n + 1) + 1
        LoopbackFixture(driver = driver, configureComeback = { listener = RetryListener { forEver(0) } }).use { ground ->
            ground.server.enqueue(status(503))
            assertEquals(200, ground.calls().outcomeOf(ground.request()))
        }
    }

    @Test
    fun `a response that another interceptor left open is an I O error for the next attempt, not a crash`() =
        LoopbackFixture(driver = driver).use { ground ->
            assumeTrue(driver == Driver.INTERCEPTOR, "the factory's next attempt is a call of its own")
            ground.server.enqueue(MockResponse(code = 503, body = "busy"))
            val leaking =
                Interceptor { chain ->
                    chain.proceed(chain.request()).run { newBuilder().body("short".toResponseBody()).build() }
                }
            val failure = assertFailsWith<IOException> { ground.calls { addInterceptor(leaking) }.send(ground.request()) }
            assertEquals(StopReason.Internal, failure.retryReport!!.reason)
            assertEquals(StopReason.Internal, ground.heard<RetryEvent.Finished>().single().reason)
        }

    @Test
    fun `whatever breaks between two attempts is an I O error with a report, after the final event`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            val retrying = ComebackInterceptor(ground.comeback)
            val broken =
                Interceptor { chain ->
                    retrying.intercept(
                        object : Interceptor.Chain by chain {
                            override fun withReadTimeout(
                                timeout: Int,
                                unit: TimeUnit,
                            ): Interceptor.Chain = throw Fault()
                        },
                    )
                }
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .addInterceptor(broken)
                        .guarded()
                        .readTimeout(Duration.ZERO)
                        .build(),
                )
            val failure = assertFailsWith<IOException> { client.send(ground.request()) }
            assertIs<Fault>(failure.cause)
            assertEquals(StopReason.Internal, failure.retryReport!!.reason)
            assertEquals(StopReason.Internal, ground.heard<RetryEvent.Finished>().single().reason)
        }

    @Test
    fun `hooks that throw count as hooks that said nothing`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            val client =
                ground.calls(configure = {
                    policyFor = { throw Fault() }
                    classify = { _, _, _ -> throw Fault() }
                    label = { throw Fault() }
                })
            assertEquals(200, client.outcomeOf(ground.request()))
            assertEquals(2, ground.server.requestCount)
        }

    @Test
    fun `a connectivity that throws counts as one that knows nothing`() {
        val broken =
            object : Connectivity {
                override val snapshot: NetworkSnapshot get() = throw Fault()

                override fun subscribe(onChange: () -> Unit): Subscription = throw Fault()
            }
        LoopbackFixture(driver = driver, configureComeback = { connectivity = broken }).use { ground ->
            ground.server.enqueue(status(503))
            assertEquals(200, ground.calls().outcomeOf(ground.request()))
        }
    }

    @Test
    fun `a panic while deciding delivers the response there is, open`() =
        LoopbackFixture(driver = driver, configureComeback = WatchedCore("decide")::putInto).use { ground ->
            ground.server.enqueue(MockResponse(code = 503, body = "busy"))
            ground.calls().send(ground.request()).use { response ->
                assertEquals("busy", response.body.string())
                assertEquals(StopReason.Internal, response.retryReport!!.reason)
            }
            // The library works on.
            assertEquals(200, ground.calls().outcomeOf(ground.request()))
        }

    @Test
    fun `a panic while deciding throws the failure there is`() =
        LoopbackFixture(driver = driver, configureComeback = WatchedCore("decide")::putInto).use { ground ->
            val failure = IOException()
            val client = ground.calls { addInterceptor { throw failure } }
            assertEquals(failure, assertFailsWith<IOException> { client.send(ground.request()) })
            assertEquals(StopReason.Internal, failure.retryReport!!.reason)
        }

    @Test
    fun `a panic while waiting is an I O error, since the response is closed by then`() =
        LoopbackFixture(driver = driver, configureComeback = WatchedCore("resume")::putInto).use { ground ->
            ground.server.enqueue(status(503))
            val failure = assertFailsWith<IOException> { ground.calls().send(ground.request()) }
            assertEquals(StopReason.Internal, failure.retryReport!!.reason)
        }

    @Test
    fun `a response body that cannot even be closed is no reason to fail`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            val client =
                ground.calls {
                    addInterceptor { chain ->
                        chain.proceed(chain.request()).let {
                            if (it.code ==
                                503
                            ) {
                                uncloseable(it)
                            } else {
                                it
                            }
                        }
                    }
                }
            assertEquals(200, client.outcomeOf(ground.request()))
        }

    private fun uncloseable(response: Response): Response {
        val body = response.body
        val uncloseable =
            object : ResponseBody() {
                override fun contentType() = body.contentType()

                override fun contentLength() = body.contentLength()

                override fun source(): BufferedSource = body.source()

                override fun close() {
                    body.close()
                    throw Fault()
                }
            }
        return response.newBuilder().body(uncloseable).build()
    }

    @Test
    fun `an exception whose own methods throw is passed on all the same`() =
        LoopbackFixture(driver = driver).use { ground ->
            val weird =
                object : IOException() {
                    override val cause: Throwable get() = throw Fault()
                }
            val client = ground.calls { addInterceptor { throw weird } }
            assertEquals<Any>(weird, client.outcomeOf(ground.request()))
        }

    @Test
    fun `a hook cannot read a body, and the app still gets it whole`() =
        LoopbackFixture(driver = driver).use { ground ->
            var read: Result<String>? = null
            val client =
                ground.calls(configure = {
                    classify = { _, response, _ ->
                        read = runCatching { response!!.body.string() }
                        response?.close()
                        null
                    }
                })
            client.send(ground.request()).use { assertEquals("fine", it.body.string()) }
            assertEquals(true, read?.isFailure)
        }

    @Test
    fun `a hook may make a good response a bad one, but not lift what may be repeated`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse.Builder().addHeader("X-Problem", "busy").build())
            ground.server.enqueue(MockResponse.Builder().addHeader("X-Problem", "busy").build())
            val client =
                ground.calls(configure = {
                    classify = { _, response, _ -> OutcomeClass.TRANSIENT_STATUS.takeIf { response?.header("X-Problem") == "busy" } }
                })
            client.send(ground.request()).use { assertEquals("fine", it.body.string()) }
            ground.server.enqueue(MockResponse.Builder().addHeader("X-Problem", "busy").build())
            client.send(ground.post()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
        }

    @Test
    fun `policyFor chooses, and a request's own policy comes before it`() =
        LoopbackFixture(driver = driver).use { ground ->
            val client =
                ground.calls(configure = {
                    policyFor = { request ->
                        RetryPolicy.OFF.takeIf { request.url.encodedPath == "/off" }
                    }
                })
            ground.server.enqueue(status(503))
            assertEquals(503, client.outcomeOf(ground.request(path = "/off")))
            ground.server.enqueue(status(503))
            assertEquals(200, client.outcomeOf(ground.request(path = "/off") { retryPolicy(RetryPolicy.DEFAULT) }))
            ground.server.enqueue(status(503))
            assertEquals(200, client.outcomeOf(ground.request(path = "/on")))
            ground.server.enqueue(status(503))
            assertEquals(503, client.outcomeOf(ground.request(path = "/on") { retryPolicy(RetryPolicy.OFF) }))
        }
}
