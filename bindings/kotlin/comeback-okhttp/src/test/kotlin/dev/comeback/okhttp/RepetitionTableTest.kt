// What may be repeated (docs/design.md), on real sockets: what goes wrong x method x key x the client's own re-sends, and how often the server hears of it.
package dev.comeback.okhttp

import dev.comeback.ClientResends
import dev.comeback.RetryPolicy
import dev.comeback.testing.FakeLink
import mockwebserver3.MockResponse
import mockwebserver3.QueueDispatcher
import mockwebserver3.SocketEffect
import mockwebserver3.SocketEffect.CloseSocket
import mockwebserver3.SocketEffect.CloseStream
import mockwebserver3.SocketEffect.Stall
import okhttp3.HttpUrl
import okhttp3.Interceptor
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okio.ByteString
import okio.ByteString.Companion.encodeUtf8
import org.junit.jupiter.api.DynamicContainer
import org.junit.jupiter.api.DynamicContainer.dynamicContainer
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals

internal class RepetitionTableTest {
    /** What an effect tells about the request it happened to. */
    private enum class Promise { NEVER_SENT, IN_DOUBT, STATUS, ANSWERED }

    /**
     * @param isSeen whether the server counts the request this happened to
     * @param clientResends whether OkHttp, left to itself, sends again at once what may be repeated
     */
    private enum class Effect(
        val promise: Promise,
        val isSeen: Boolean = true,
        val clientResends: Boolean = false,
        val needsBody: Boolean = false,
    ) {
        CONNECTION_REFUSED(Promise.NEVER_SENT, isSeen = false),
        TLS_BROKEN_OFF(Promise.NEVER_SENT),
        HTTP2_REFUSED_STREAM(Promise.NEVER_SENT),
        HTTP2_GOAWAY(Promise.NEVER_SENT),
        CLOSED_AT_ACCEPT(Promise.IN_DOUBT),
        CLOSED_IN_REQUEST_BODY(Promise.IN_DOUBT, needsBody = true),
        CLOSED_BEFORE_RESPONSE(Promise.IN_DOUBT),
        HALF_RESPONSE_HEAD(Promise.IN_DOUBT),
        STALLED_BEFORE_RESPONSE(Promise.IN_DOUBT),
        HTTP2_STREAM_RESET(Promise.IN_DOUBT),
        HTTP2_CANCEL_NOBODY_ASKED_FOR(Promise.IN_DOUBT),
        HTTP2_CLOSED_BEFORE_RESPONSE(Promise.IN_DOUBT),
        POOLED_CLOSED_BEFORE_RESPONSE(Promise.IN_DOUBT, clientResends = true),
        POOLED_DROPPED_WHILE_IDLE(Promise.IN_DOUBT, isSeen = false, clientResends = true),
        STATUS_503(Promise.STATUS),
        STATUS_503_RETRY_AFTER_0(Promise.STATUS),
        STATUS_408(Promise.STATUS),
        HALF_RESPONSE_BODY(Promise.ANSWERED),
    }

    private enum class Sort(
        val method: String,
        val hasBody: Boolean,
        /** What may be repeated: without a key, and with one. */
        val mayRepeat: Boolean,
        val mayRepeatKeyed: Boolean = true,
        val isConditional: Boolean = false,
    ) {
        GET("GET", false, true),
        HEAD("HEAD", false, true),
        PUT("PUT", true, true),
        DELETE("DELETE", false, true),
        CONDITIONAL_PUT("PUT", true, false, isConditional = true),
        CONDITIONAL_DELETE("DELETE", false, false, isConditional = true),
        POST("POST", true, false),
        PATCH("PATCH", true, false),
        LINK("LINK", false, false, mayRepeatKeyed = false),
    }

    private fun expected(
        effect: Effect,
        sort: Sort,
        hasKey: Boolean,
        resends: ClientResends,
    ): Int {
        val seen = if (effect.isSeen) 1 else 0
        val mayRepeat = if (hasKey) sort.mayRepeatKeyed else sort.mayRepeat
        val clientDoesIt = effect.clientResends && resends == ClientResends.KEEP && mayRepeat
        val goesAgain = clientDoesIt || effect.promise == Promise.NEVER_SENT || (effect.promise != Promise.ANSWERED && mayRepeat)
        return seen + if (goesAgain) 1 else 0
    }

    @TestFactory
    fun `the server hears of a request as often as the table says`(): List<DynamicContainer> =
        Effect.entries.map { effect -> dynamicContainer(effect.name, Driver.entries.flatMap { driver -> cells(effect, driver) }) }

    private fun cells(
        effect: Effect,
        driver: Driver,
    ): List<DynamicTest> =
        Sort.entries.filter { it.hasBody || !effect.needsBody }.flatMap { sort ->
            listOf(false, true).flatMap { hasKey ->
                ClientResends.entries.map { resends ->
                    val count = expected(effect, sort, hasKey, resends)
                    dynamicTest("$driver, $sort, ${if (hasKey) "key" else "no key"}, client's re-sends $resends: $count") {
                        check(effect, driver, sort, hasKey, resends, count)
                    }
                }
            }
        }

    private fun check(
        effect: Effect,
        driver: Driver,
        sort: Sort,
        hasKey: Boolean,
        resends: ClientResends,
        count: Int,
    ) {
        val stage = stageFor(effect, driver)
        stage.use {
            val calls = stage.calls(if (resends == ClientResends.OFF) RESENDS_OFF else RetryPolicy.DEFAULT)
            stage.warmUp(calls)
            val request =
                Request
                    .Builder()
                    .url(stage.url)
                    .method(sort.method, if (sort.hasBody) BODY.toRequestBody() else null)
            if (hasKey) request.header(LoopbackFixture.KEY, "the caller's")
            if (sort.isConditional) request.header("If-Match", "\"v1\"")
            val outcome = calls.outcomeOf(request.build())

            assertEquals(count, stage.count(), "$outcome after ${stage.events}")
            assertEquals(emptyList<ByteString>(), stage.bodies().filter { it != if (sort.hasBody) BODY else ByteString.EMPTY })
        }
    }

    private fun stageFor(
        effect: Effect,
        driver: Driver,
    ): Stage =
        when (effect) {
            Effect.CONNECTION_REFUSED -> {
                RefusedStage(driver)
            }

            Effect.HALF_RESPONSE_HEAD -> {
                RawStage(driver, BreakingServer(BreakingServer.Part.RESPONSE_HEAD), listOf(Protocol.HTTP_1_1))
            }

            Effect.HTTP2_GOAWAY -> {
                RawStage(driver, GoAwayServer(), listOf(Protocol.H2_PRIOR_KNOWLEDGE))
            }

            Effect.TLS_BROKEN_OFF -> {
                ScriptStage(driver, answer().onRequestStart(CloseSocket()), isHttps = true)
            }

            Effect.HTTP2_REFUSED_STREAM -> {
                // After the request's body: on one that still comes the server might answer with a protocol error first.
                ScriptStage(driver, answer().onResponseStart(CloseStream(REFUSED_STREAM)), isHttp2 = true)
            }

            Effect.CLOSED_AT_ACCEPT -> {
                ScriptStage(driver, answer().onRequestStart(CloseSocket()))
            }

            Effect.CLOSED_IN_REQUEST_BODY -> {
                RawStage(driver, BreakingServer(BreakingServer.Part.REQUEST_BODY), listOf(Protocol.HTTP_1_1))
            }

            Effect.CLOSED_BEFORE_RESPONSE -> {
                ScriptStage(driver, answer().onResponseStart(CloseSocket()))
            }

            Effect.STALLED_BEFORE_RESPONSE -> {
                ScriptStage(driver, answer().onResponseStart(Stall), isStalled = true)
            }

            Effect.HTTP2_STREAM_RESET -> {
                ScriptStage(driver, answer().onResponseStart(CloseStream(INTERNAL_ERROR)), isHttp2 = true)
            }

            Effect.HTTP2_CANCEL_NOBODY_ASKED_FOR -> {
                ScriptStage(driver, answer().onResponseStart(CloseStream(CANCEL)), isHttp2 = true)
            }

            Effect.HTTP2_CLOSED_BEFORE_RESPONSE -> {
                ScriptStage(driver, answer().onResponseStart(CloseSocket()), isHttp2 = true)
            }

            Effect.POOLED_CLOSED_BEFORE_RESPONSE -> {
                ScriptStage(driver, answer().onResponseStart(CloseSocket()), warmUp = answer())
            }

            Effect.POOLED_DROPPED_WHILE_IDLE -> {
                ScriptStage(driver, null, warmUp = answer().onResponseEnd(CloseSocket()))
            }

            Effect.STATUS_503 -> {
                ScriptStage(driver, answer().code(503))
            }

            Effect.STATUS_503_RETRY_AFTER_0 -> {
                ScriptStage(driver, answer().code(503).addHeader("Retry-After", 0))
            }

            Effect.STATUS_408 -> {
                ScriptStage(driver, answer().code(408))
            }

            Effect.HALF_RESPONSE_BODY -> {
                ScriptStage(driver, answer().body("only half of this arrives").onResponseBody(CloseSocket()))
            }
        }

    private fun answer() = MockResponse.Builder()

    /** A server, and a client that misses nothing of it. */
    private abstract class Stage(
        driver: Driver,
        configureServer: mockwebserver3.MockWebServer.() -> Unit = {},
    ) : LoopbackFixture({
            dispatcher = QueueDispatcher().apply { setFailFast(MockResponse()) }
            configureServer()
        }, driver = driver) {
        abstract val url: HttpUrl

        open fun calls(policy: RetryPolicy): Calls = calls(policy) {}

        open fun warmUp(calls: Calls) = Unit

        open fun count(): Int = server.requestCount

        /** Of requests that arrived whole. */
        open fun bodies(): List<ByteString> = received().mapNotNull { it.body }
    }

    private class ScriptStage(
        driver: Driver,
        effect: MockResponse.Builder?,
        private val warmUp: MockResponse.Builder? = null,
        private val isHttp2: Boolean = false,
        private val isHttps: Boolean = false,
        private val isStalled: Boolean = false,
    ) : Stage(driver, {
            if (isHttp2) protocols = listOf(Protocol.H2_PRIOR_KNOWLEDGE)
            if (isHttps) useHttps(Certificates.server.sslSocketFactory())
        }) {
        init {
            warmUp?.let { server.enqueue(it.build()) }
            effect?.let { server.enqueue(it.build()) }
        }

        override val url: HttpUrl get() = url()

        override fun calls(policy: RetryPolicy): Calls =
            calls(policy) {
                if (isStalled) addInterceptor(ImpatientOnce { server.requestCount > 0 })
                if (isHttp2) protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE))
                if (isHttps) sslSocketFactory(Certificates.client.sslSocketFactory(), Certificates.client.trustManager)
            }

        override fun warmUp(calls: Calls) {
            if (warmUp == null) return
            calls.send(request()).close()
            received()
        }

        override fun count(): Int = server.requestCount - if (warmUp == null) 0 else 1
    }

    /**
     * The first attempt gives up on a stalled server soon, but not before the server [hasSeen] the request, which on a loaded machine may be later; a
     * later attempt has all the time it may need.
     */
    private class ImpatientOnce(
        private val hasSeen: () -> Boolean,
    ) : Interceptor {
        private val attempts = AtomicInteger()

        override fun intercept(chain: Interceptor.Chain): Response {
            if (attempts.incrementAndGet() > 1) return chain.proceed(chain.request())
            try {
                return chain.withReadTimeout(100, TimeUnit.MILLISECONDS).proceed(chain.request())
            } finally {
                val giveUp = System.nanoTime() + TimeUnit.SECONDS.toNanos(10)
                while (!hasSeen() && System.nanoTime() < giveUp) Thread.onSpinWait()
            }
        }
    }

    private class RefusedStage(
        driver: Driver,
    ) : Stage(driver) {
        private val link = FakeLink.to(server.port).apply { cut() }

        init {
            time.at(1) { link.restore() }
        }

        override val url: HttpUrl = url().newBuilder().port(link.port).build()

        override fun close() {
            link.close()
            super.close()
        }
    }

    private class RawStage(
        driver: Driver,
        private val raw: RawServer,
        private val protocols: List<Protocol>,
    ) : Stage(driver) {
        init {
            raw.start()
        }

        override val url: HttpUrl = url().newBuilder().port(raw.port).build()

        override fun calls(policy: RetryPolicy): Calls =
            calls(policy) {
                protocols(protocols)
            }

        override fun count(): Int = raw.heads.get()

        override fun bodies(): List<ByteString> = raw.bodies

        override fun close() {
            raw.close()
            super.close()
        }
    }

    private companion object {
        const val REFUSED_STREAM = 7
        const val CANCEL = 8
        const val INTERNAL_ERROR = 2

        val BODY = "amount=100&currency=EUR".encodeUtf8()
        val RESENDS_OFF = RetryPolicy { clientResends = ClientResends.OFF }
    }
}
