// The app's own code further in sends an order through another client, which nobody here hears: it arrives and dies. Then the order's own host is refused,
// which looks like "never sent". The server counts.
package dev.comeback.ktor

import dev.comeback.Jitter
import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import dev.comeback.mayHaveArrived
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.engine.okhttp.OkHttpConfig
import io.ktor.client.plugins.DefaultRequest
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.UserAgent
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.auth.Auth
import io.ktor.client.plugins.auth.providers.bearer
import io.ktor.client.plugins.cache.HttpCache
import io.ktor.client.plugins.cookies.HttpCookies
import io.ktor.client.plugins.plugin
import io.ktor.client.request.HttpSendPipeline
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import java.io.IOException
import java.net.ServerSocket
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes

class OtherClientsTest {
    private val mirror = ScriptedServer { reset() }
    private val plain = OkHttpClient()
    private val engines: Map<String, HttpClientEngineFactory<*>> = mapOf("OkHttp" to OkHttp, "CIO" to CIO)

    /** Sends the order to [mirror] first. */
    private fun mirrored() {
        try {
            plain
                .newCall(
                    Request
                        .Builder()
                        .url(mirror.url)
                        .post("order".toRequestBody())
                        .build(),
                ).execute()
                .close()
        } catch (_: IOException) {
            // It has arrived.
        }
    }

    private val failover =
        Interceptor { chain ->
            mirrored()
            chain.proceed(chain.request())
        }

    private fun okHttp(configure: OkHttpConfig.() -> Unit) =
        object : HttpClientEngineFactory<OkHttpConfig> {
            override fun create(block: OkHttpConfig.() -> Unit) =
                OkHttp.create {
                    configure()
                    block()
                }
        }

    private suspend fun HttpClient.order(url: String): Any =
        runCatching { post(url) { setBody("order") } }.fold({ it.status.value }, { it })

    private fun assertOnce(
        engine: HttpClientEngineFactory<*>,
        configure: RecordedClient.(mirrored: () -> Unit) -> Unit = {},
    ): Unit =
        runBlocking {
            withTimeout(1.minutes) {
                mirror.use {
                    RecordedClient(engine, PAYMENT, {}).use { through ->
                        through.configure(::mirrored)
                        val left = through.client.order(REFUSED) as Throwable
                        assertEquals(1, mirror.bodies.size, "$left")
                        assertEquals(OutcomeClass.IN_DOUBT, through.failed.single().outcome)
                        assertTrue(left.mayHaveArrived)
                        runCatching {
                            through.comeback.retry(PAYMENT) { through.client.post(REFUSED) { setBody("order") } }
                        }
                        assertEquals(2, mirror.bodies.size, "in a block")
                    }
                }
            }
        }

    @Test
    fun `an interceptor in the OkHttp engine`() = assertOnce(okHttp { addInterceptor(failover) })

    @Test
    fun `one of the client that the engine is made from`() =
        assertOnce(okHttp { preconfigured = OkHttpClient.Builder().addInterceptor(failover).build() })

    @TestFactory
    fun `an interceptor of HttpSend that was added after the plugin`(): List<DynamicTest> =
        engines.map { (name, engine) ->
            dynamicTest(name) {
                OtherClientsTest().assertOnce(engine) { mirrored ->
                    client.plugin(HttpSend).intercept { request ->
                        mirrored()
                        execute(request)
                    }
                }
            }
        }

    @TestFactory
    fun `one that was added the way plugins do`(): List<DynamicTest> =
        engines.map { (name, engine) ->
            dynamicTest(name) {
                OtherClientsTest().assertOnce(engine) { mirrored ->
                    Send.install(client) { request ->
                        mirrored()
                        proceed(request)
                    }
                }
            }
        }

    @TestFactory
    fun `an interceptor of the send pipeline`(): List<DynamicTest> =
        engines.map { (name, engine) ->
            dynamicTest(name) {
                OtherClientsTest().assertOnce(engine) { mirrored ->
                    client.sendPipeline.intercept(HttpSendPipeline.State) {
                        mirrored()
                        proceed()
                    }
                }
            }
        }

    @Test
    fun `an interceptor that is added when the client has failed already`(): Unit =
        runBlocking {
            RecordedClient(CIO, PAYMENT, {}).use { through ->
                through.client.order(REFUSED)
                assertEquals(List(3) { OutcomeClass.NEVER_SENT }, through.failed.map { it.outcome })
                through.client.sendPipeline.intercept(HttpSendPipeline.State) {
                    mirrored()
                    proceed()
                }
                through.client.order(REFUSED)
                assertEquals(1, mirror.bodies.size)
            }
        }

    @TestFactory
    fun `Ktor's own plugins further in send through no other client`(): List<DynamicTest> =
        engines.map { (name, engine) ->
            dynamicTest(name) {
                runBlocking {
                    RecordedClient(engine, PAYMENT, {
                        install(HttpTimeout) { connectTimeoutMillis = 5_000 }
                        install(HttpCookies)
                        install(HttpCache)
                        install(UserAgent) { agent = "app" }
                        install(DefaultRequest) { headers.append("X-App", "1") }
                        install(Auth) { bearer { loadTokens { null } } }
                    }).use { through ->
                        through.client.order(REFUSED)
                        assertEquals(List(3) { OutcomeClass.NEVER_SENT }, through.failed.map { it.outcome })
                    }
                }
            }
        }

    /** What it throws is not the server's word. */
    @Test
    fun `a network interceptor, which then says that the stream was refused`(): Unit =
        runBlocking {
            ScriptedServer { status(200) }.use { server ->
                val refuses =
                    Interceptor {
                        mirrored()
                        throw StreamResetException(ErrorCode.REFUSED_STREAM)
                    }
                RecordedClient(okHttp { addNetworkInterceptor(refuses) }, PAYMENT, {}).use { through ->
                    val left = through.client.order(server.url) as Throwable
                    assertEquals(1, mirror.bodies.size, "$left")
                    assertTrue(left.mayHaveArrived)
                }
            }
        }

    @TestFactory
    fun `a refused connection still is never sent where no other client can have been asked`(): List<DynamicTest> {
        val does = Interceptor { it.proceed(it.request()) }
        return listOf<Triple<String, Boolean, OkHttpConfig.() -> Unit>>(
            Triple("no interceptors", false) {},
            Triple("a network interceptor that was not reached", false) { addNetworkInterceptor(does) },
            Triple("interceptors for which the app vouches", true) {
                addInterceptor(does)
                addNetworkInterceptor(does)
            },
        ).map { (name, vouches, configure) ->
            dynamicTest(name) {
                runBlocking {
                    RecordedClient(okHttp(configure), PAYMENT, {}, { onlyThisClientSends = vouches }).use { through ->
                        val left = through.client.order(REFUSED) as Throwable
                        assertEquals(List(3) { OutcomeClass.NEVER_SENT }, through.failed.map { it.outcome })
                        assertFalse(left.mayHaveArrived)
                    }
                }
            }
        }
    }

    private companion object {
        /** Nobody listens there. */
        val REFUSED = ServerSocket(0).use { "http://127.0.0.1:${it.localPort}/" }
        val PAYMENT =
            RetryPolicy(RetryPolicy.PAYMENT) {
                base = 1.milliseconds
                cap = 1.milliseconds
                jitter = Jitter.NONE
            }
    }
}
