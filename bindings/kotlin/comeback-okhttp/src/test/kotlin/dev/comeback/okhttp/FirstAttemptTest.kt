// A first attempt behaves exactly as it would without Comeback.
package dev.comeback.okhttp

import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import mockwebserver3.MockResponse
import okhttp3.Call
import okhttp3.EventListener
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.Response
import okio.BufferedSink
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import org.junit.jupiter.params.provider.ValueSource
import java.io.IOException
import java.time.Duration
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNull
import kotlin.test.assertSame

@ParameterizedClass
@EnumSource(Driver::class)
internal class FirstAttemptTest(
    private val driver: Driver,
) {
    private class SessionExpired : IOException("please log in")

    /** What the interceptor after Comeback is handed. */
    private class Seen : Interceptor {
        lateinit var chain: Interceptor.Chain

        override fun intercept(chain: Interceptor.Chain) = chain.also { this.chain = it }.proceed(chain.request())
    }

    private fun OkHttpClient.Builder.slow() {
        connectTimeout(Duration.ofSeconds(60))
        readTimeout(Duration.ofSeconds(60))
        writeTimeout(Duration.ofSeconds(60))
    }

    @ParameterizedTest
    @ValueSource(strings = ["default", "read"])
    fun `the app's own timeouts hold, though longer than any deadline`(preset: String) =
        LoopbackFixture(driver = driver).use { ground ->
            val seen = Seen()
            val policy = if (preset == "read") RetryPolicy.READ else RetryPolicy.DEFAULT
            val client =
                ground.calls(policy) {
                    slow()
                    addInterceptor(seen)
                }
            client.send(ground.request()).close()
            val timeouts = with(seen.chain) { listOf(connectTimeoutMillis(), readTimeoutMillis(), writeTimeoutMillis()) }
            assertEquals(listOf(60_000, 60_000, 60_000), timeouts)
        }

    @Test
    fun `a GET goes as the request it is, unheard, through the client's own pool`() =
        LoopbackFixture(driver = driver).use { ground ->
            assumeTrue(driver == Driver.INTERCEPTOR, "the factory listens to every attempt")
            val seen = Seen()
            val appsOwn = object : EventListener() {}
            val client =
                ground.calls {
                    addInterceptor(seen)
                    eventListener(appsOwn)
                }
            val request = ground.request { header("If-None-Match", "\"v1\"") }
            client.send(request).use { response ->
                assertSame(request, response.request)
                assertNull(response.retryReport)
            }
            assertSame(request, seen.chain.request())
            assertSame(appsOwn, seen.chain.eventListener)
            assertSame(client.connectionPool, seen.chain.connectionPool)
        }

    @Test
    fun `where nobody listens a good answer is returned as it came, and a bad one goes again as ever`() =
        LoopbackFixture(driver = driver, configureComeback = { listener = null }).use { ground ->
            val answers = ArrayList<Response>()
            val client = ground.calls { addInterceptor { chain -> chain.proceed(chain.request()).also { answers += it } } }
            client.send(ground.request()).use { assertSame(answers.single(), it) }
            ground.server.enqueue(status(503))
            client.send(ground.request()).use { response ->
                assertEquals(200, response.code)
                assertEquals(listOf<Int?>(503), response.retryReport!!.attempts.map { it.status })
            }
            assertEquals(listOf(200, 503, 200), answers.map { it.code })
        }

    @Test
    fun `an upload that takes longer than max_elapsed completes`() =
        LoopbackFixture(driver = driver).use { ground ->
            val slowBody =
                object : RequestBody() {
                    override fun contentType(): MediaType? = null

                    override fun writeTo(sink: BufferedSink) {
                        repeat(10) {
                            ground.time.advance(TimeUnit.MINUTES.toNanos(1))
                            sink.writeUtf8("a part, ").flush()
                        }
                    }
                }
            assertEquals(200, ground.calls().outcomeOf(ground.post(slowBody)))
            assertEquals(
                "a part, ".repeat(10),
                ground
                    .received()
                    .single()
                    .body
                    ?.utf8(),
            )
        }

    @Test
    fun `server-sent events stay open`() =
        LoopbackFixture(driver = driver).use { ground ->
            val events = MockResponse.Builder().addHeader("Content-Type", "text/event-stream").chunkedBody("data: one\n\ndata: two\n\n", 11)
            ground.server.enqueue(events.throttleBody(16, 300, TimeUnit.MILLISECONDS).build())
            ground.calls(RetryPolicy.READ).send(ground.request()).use { response ->
                val source = response.body.source()
                assertEquals("data: one", source.readUtf8Line())
                ground.time.advance(TimeUnit.HOURS.toNanos(1))
                assertEquals("", source.readUtf8Line())
                assertEquals("data: two", source.readUtf8Line())
            }
        }

    @Test
    fun `an app's own I O exception has its own meaning and is not retried`() =
        LoopbackFixture(driver = driver).use { ground ->
            val expired = SessionExpired()
            val client = ground.calls { addInterceptor { throw expired } }
            val thrown = assertFailsWith<SessionExpired> { client.send(ground.request()) }
            assertSame(expired, thrown)
            assertEquals(StopReason.Permanent, thrown.retryReport!!.reason)
            assertEquals(1, ground.heard<RetryEvent.AttemptFailed>().size)
        }

    @Test
    fun `another interceptor's bug comes out as it is, after the final event`() =
        LoopbackFixture(driver = driver).use { ground ->
            assumeTrue(driver != Driver.ENQUEUED, "OkHttp lets it go to the thread, and the callback hear of an IOException")
            val bug = NullPointerException("not ours")
            val client = ground.calls { addInterceptor { throw bug } }
            assertSame(bug, assertFailsWith<NullPointerException> { client.send(ground.request()) })
            assertEquals(0, bug.suppressed.size)
            assertEquals(1, ground.heard<RetryEvent.Finished>().size)
        }

    @Test
    fun `an error status that is no cause for a retry is delivered untouched`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse(code = 404, body = "nothing here"))
            val request = ground.request()
            ground.calls().send(request).use { response ->
                assertEquals("nothing here", response.body.string())
                assertSame(request, response.request)
                assertNull(response.retryReport)
            }
            assertNull(ground.heard<RetryEvent.Finished>().single().reason)
        }

    @Test
    fun `a body that was wrapped on its way is the app's own again on the response`() =
        LoopbackFixture(driver = driver).use { ground ->
            val request = ground.post()
            ground.calls(RetryPolicy.PAYMENT).send(request).use { response ->
                assertSame(request.body, response.request.body)
            }
        }

    @Test
    fun `a report does not stay on requests that are made from a delivered one`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            val client = ground.calls()
            val first: Request = client.send(ground.request()).use { it.request }
            client.send(first.newBuilder().url(ground.url("/next")).build()).use { assertNull(it.retryReport) }
        }

    @Test
    fun `a first-try success asks the core nothing, at start-up neither`() {
        val core = WatchedCore()
        LoopbackFixture(driver = driver, configureComeback = core::putInto).use { ground ->
            assertEquals(200, ground.calls().outcomeOf(ground.request()))
            assertEquals(200, ground.calls(RetryPolicy.PAYMENT).outcomeOf(ground.post()))
            assertEquals(emptyList(), core.askedBy(Thread.currentThread()))
            assertEquals(emptyList(), core.questions())
            ground.server.enqueue(status(503))
            assertEquals(200, ground.calls().outcomeOf(ground.request()))
            assertEquals(listOf("begin", "decide", "resume"), core.questions())
        }
    }
}
