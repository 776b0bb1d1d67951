// One layer acts; what cannot go again passes.
package dev.comeback.okhttp

import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.OuterAttempt
import dev.comeback.okhttp.internal.guarded
import dev.comeback.retryReport
import okhttp3.Dns
import okhttp3.Interceptor
import okhttp3.OkHttp
import okhttp3.OkHttpClient
import okhttp3.Response
import okhttp3.WebSocket
import okhttp3.WebSocketListener
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.TimeUnit
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertSame

internal class LayersTest {
    @Test
    fun `two layers make as many attempts as one`() =
        LoopbackFixture().use { ground ->
            repeat(20) { ground.server.enqueue(status(503)) }
            val client = ground.client { comeback(ground.comeback, RetryPolicy.READ) }
            assertEquals(503, client.outcomeOf(ground.request()))
            assertEquals(4, ground.server.requestCount)
            assertEquals(1, ground.heard<RetryEvent.Finished>().size)
        }

    @Test
    fun `a layer above that says so by its tag has the call`() =
        LoopbackFixture().use { ground ->
            repeat(2) { ground.server.enqueue(status(503)) }
            val above = OuterAttempt(clientResendsOff = true)
            assertEquals(503, ground.client().outcomeOf(ground.request { tag(OuterAttempt::class.java, above) }))
            assertEquals(emptyList(), ground.events)
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a header that only looks like it is any caller's header`() =
        LoopbackFixture().use { ground ->
            ground.server.enqueue(status(503))
            assertEquals(200, ground.client().outcomeOf(ground.request { header("Comeback-Layer", "true//") }))
            assertEquals(listOf("true//", "true//"), ground.received().map { it.headers["Comeback-Layer"] })
        }

    @ParameterizedTest
    @EnumSource(Driver::class)
    fun `a layer above on the same thread has the call`(driver: Driver) =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            val calls = ground.calls()
            OuterAttempt.inside(OuterAttempt()) { assertEquals(503, calls.outcomeOf(ground.request())) }
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `a retry layer outside is served anew each time`() =
        LoopbackFixture().use { ground ->
            repeat(4) { ground.server.enqueue(status(503)) }
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .addInterceptor { chain ->
                            chain.proceed(chain.request()).close()
                            chain.proceed(chain.request())
                        }.comeback(ground.comeback)
                        .build(),
                )
            assertEquals(200, client.outcomeOf(ground.request()))
            assertEquals(5, ground.server.requestCount)
        }

    @Test
    fun `interceptors before Comeback run once per call, those after it once per attempt`() =
        LoopbackFixture().use { ground ->
            val ran = CopyOnWriteArrayList<String>()

            fun note(name: String) = Interceptor { chain -> chain.proceed(chain.request()).also { ran += name } }
            ground.server.enqueue(status(503))
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .addInterceptor(note("before"))
                        .comeback(ground.comeback)
                        .addInterceptor(note("after"))
                        .build(),
                )
            client.outcomeOf(ground.request())
            assertEquals(listOf("after", "after", "before"), ran)
        }

    @Test
    fun `as a network interceptor it lets everything pass`() =
        LoopbackFixture().use { ground ->
            ground.server.enqueue(status(503))
            val client = ground.remember(OkHttpClient.Builder().addNetworkInterceptor(ComebackInterceptor(ground.comeback)).build())
            assertEquals(503, client.outcomeOf(ground.request()))
        }

    @Test
    fun `an interceptor that was put in by hand lets everything pass, and says so once`() =
        LoopbackFixture().use { ground ->
            repeat(2) { ground.server.enqueue(status(503)) }
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .apply { interceptors() += ground.client().interceptors }
                        .build(),
                )
            repeat(2) { assertEquals(503, client.outcomeOf(ground.request())) }
            assertEquals(listOf("okhttp3.OkHttpClient"), ground.heard<RetryEvent.Unavailable>().map { it.file })
        }

    @Test
    fun `a chain without OkHttp's newer members lets everything pass, and that is said once`() =
        LoopbackFixture().use { ground ->
            repeat(2) { ground.server.enqueue(status(503)) }
            val older =
                Interceptor { chain ->
                    ground.client().interceptors.single().intercept(
                        object : Interceptor.Chain by chain {
                            override fun withDns(dns: Dns): Interceptor.Chain = throw AbstractMethodError()
                        },
                    )
                }
            val client =
                ground.remember(
                    OkHttpClient
                        .Builder()
                        .addInterceptor(older)
                        .guarded()
                        .build(),
                )
            repeat(2) { assertEquals(503, client.outcomeOf(ground.request())) }
            val told = ground.heard<RetryEvent.Unavailable>().single()
            assertEquals("Comeback needs OkHttp 5.4 or newer, and this is ${OkHttp.VERSION}", told.cause.message)
        }

    @Test
    fun `a web-socket upgrade is not tried again`() =
        LoopbackFixture().use { ground ->
            ground.server.enqueue(status(503))
            val failed = CompletableFuture<Int>()
            val listener =
                object : WebSocketListener() {
                    override fun onFailure(
                        webSocket: WebSocket,
                        t: Throwable,
                        response: Response?,
                    ) {
                        failed.complete(response?.code)
                    }
                }
            ground.client().newWebSocket(ground.request(), listener)
            assertEquals(503, failed.get(10, TimeUnit.SECONDS))
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `an upgrade asked for among other options is not tried again`() =
        LoopbackFixture().use { ground ->
            ground.server.enqueue(status(503))
            val upgrade =
                ground
                    .request()
                    .newBuilder()
                    .header("Connection", "keep-alive, Upgrade")
                    .header("Upgrade", "chat")
                    .build()
            assertEquals(503, ground.client().outcomeOf(upgrade))
            assertEquals(1, ground.server.requestCount)
        }

    @Test
    fun `one exception thrown over and over does not hang on itself`() =
        LoopbackFixture().use { ground ->
            val constant = IOException("always the same")
            val client = ground.client { addInterceptor { throw constant } }
            repeat(2) { assertSame<Throwable>(constant, assertFailsWith<IOException> { client.send(ground.request()) }) }
            assertEquals(StopReason.Attempts, constant.retryReport!!.reason)
            assertEquals(0, constant.suppressed.count { it is IOException })
        }
}
