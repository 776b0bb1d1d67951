// The table of section 6 on real sockets: what goes wrong x method x key x the client's own re-sends, and how often the server hears of it.
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
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okio.ByteString
import okio.ByteString.Companion.encodeUtf8
import org.junit.jupiter.api.DynamicContainer
import org.junit.jupiter.api.DynamicContainer.dynamicContainer
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
     * @param clientResends whether OkHttp, left to itself, sends again at once
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
        STATUS_503_RETRY_AFTER_0(Promise.STATUS, clientResends = true),
        STATUS_408(Promise.STATUS, clientResends = true),
        HALF_RESPONSE_BODY(Promise.ANSWERED),
    }

    private enum class Sort(
        val method: String,
        val hasBody: Boolean,
        /** Section 6: without a key, and with one. */
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
        val clientDoesIt = effect.clientResends && resends == ClientResends.KEEP
        val goesAgain = clientDoesIt || effect.promise == Promise.NEVER_SENT || (effect.promise != Promise.ANSWERED && mayRepeat)
        return seen + if (goesAgain) 1 else 0
    }

    @TestFactory
    fun `the server hears of a request as often as the table says`(): List<DynamicContainer> =
        Effect.entries.map { effect ->
            val cells =
                Sort.entries.filter { it.hasBody || !effect.needsBody }.flatMap { sort ->
                    listOf(false, true).flatMap { hasKey ->
                        ClientResends.entries.map { resends ->
                            val count = expected(effect, sort, hasKey, resends)
                            dynamicTest("$sort, ${if (hasKey) "key" else "no key"}, client's re-sends $resends: $count") {
                                check(effect, sort, hasKey, resends, count)
                            }
                        }
                    }
                }
            dynamicContainer(effect.name, cells)
        }

    private fun check(
        effect: Effect,
        sort: Sort,
        hasKey: Boolean,
        resends: ClientResends,
        count: Int,
    ) {
        val stage = stageFor(effect)
        stage.use {
            val client = stage.client(if (resends == ClientResends.OFF) RESENDS_OFF else RetryPolicy.DEFAULT)
            stage.warmUp(client)
            val request =
                Request
                    .Builder()
                    .url(stage.url)
                    .method(sort.method, if (sort.hasBody) BODY.toRequestBody() else null)
            if (hasKey) request.header(Ground.KEY, "the caller's")
            if (sort.isConditional) request.header("If-Match", "\"v1\"")
            val outcome = client.outcomeOf(request.build())

            assertEquals(count, stage.count(), "$outcome after ${stage.events}")
            assertEquals(emptyList<ByteString>(), stage.bodies().filter { it != if (sort.hasBody) BODY else ByteString.EMPTY })
        }
    }

    private fun stageFor(effect: Effect): Stage =
        when (effect) {
            Effect.CONNECTION_REFUSED -> {
                RefusedStage()
            }

            Effect.HALF_RESPONSE_HEAD -> {
                RawStage(BreakingServer(BreakingServer.Part.RESPONSE_HEAD), listOf(Protocol.HTTP_1_1))
            }

            Effect.HTTP2_GOAWAY -> {
                RawStage(GoAwayServer(), listOf(Protocol.H2_PRIOR_KNOWLEDGE))
            }

            Effect.TLS_BROKEN_OFF -> {
                ScriptStage(answer().onRequestStart(CloseSocket()), isHttps = true)
            }

            Effect.HTTP2_REFUSED_STREAM -> {
                // After the request's body: on one that still comes the server might answer with a protocol error first.
                ScriptStage(answer().onResponseStart(CloseStream(REFUSED_STREAM)), isHttp2 = true)
            }

            Effect.CLOSED_AT_ACCEPT -> {
                ScriptStage(answer().onRequestStart(CloseSocket()))
            }

            Effect.CLOSED_IN_REQUEST_BODY -> {
                RawStage(BreakingServer(BreakingServer.Part.REQUEST_BODY), listOf(Protocol.HTTP_1_1))
            }

            Effect.CLOSED_BEFORE_RESPONSE -> {
                ScriptStage(answer().onResponseStart(CloseSocket()))
            }

            Effect.STALLED_BEFORE_RESPONSE -> {
                ScriptStage(answer().onResponseStart(Stall), isStalled = true)
            }

            Effect.HTTP2_STREAM_RESET -> {
                ScriptStage(answer().onResponseStart(CloseStream(INTERNAL_ERROR)), isHttp2 = true)
            }

            Effect.HTTP2_CANCEL_NOBODY_ASKED_FOR -> {
                ScriptStage(answer().onResponseStart(CloseStream(CANCEL)), isHttp2 = true)
            }

            Effect.HTTP2_CLOSED_BEFORE_RESPONSE -> {
                ScriptStage(answer().onResponseStart(CloseSocket()), isHttp2 = true)
            }

            Effect.POOLED_CLOSED_BEFORE_RESPONSE -> {
                ScriptStage(answer().onResponseStart(CloseSocket()), warmUp = answer())
            }

            Effect.POOLED_DROPPED_WHILE_IDLE -> {
                ScriptStage(null, warmUp = answer().onResponseEnd(CloseSocket()))
            }

            Effect.STATUS_503 -> {
                ScriptStage(answer().code(503))
            }

            Effect.STATUS_503_RETRY_AFTER_0 -> {
                ScriptStage(answer().code(503).addHeader("Retry-After", 0))
            }

            Effect.STATUS_408 -> {
                ScriptStage(answer().code(408))
            }

            Effect.HALF_RESPONSE_BODY -> {
                ScriptStage(answer().body("only half of this arrives").onResponseBody(CloseSocket()))
            }
        }

    private fun answer() = MockResponse.Builder()

    /** A server, and a client that misses nothing of it. */
    private abstract class Stage(
        configureServer: mockwebserver3.MockWebServer.() -> Unit = {},
    ) : Ground({
            dispatcher = QueueDispatcher().apply { setFailFast(MockResponse()) }
            configureServer()
        }) {
        abstract val url: HttpUrl

        open fun client(policy: RetryPolicy): OkHttpClient = client(policy) {}

        open fun warmUp(client: OkHttpClient) = Unit

        open fun count(): Int = server.requestCount

        /** Of requests that arrived whole. */
        open fun bodies(): List<ByteString> = received().mapNotNull { it.body }
    }

    private class ScriptStage(
        effect: MockResponse.Builder?,
        private val warmUp: MockResponse.Builder? = null,
        private val isHttp2: Boolean = false,
        private val isHttps: Boolean = false,
        private val isStalled: Boolean = false,
    ) : Stage({
            if (isHttp2) protocols = listOf(Protocol.H2_PRIOR_KNOWLEDGE)
            if (isHttps) useHttps(Certificates.server.sslSocketFactory())
        }) {
        init {
            warmUp?.let { server.enqueue(it.build()) }
            effect?.let { server.enqueue(it.build()) }
        }

        override val url: HttpUrl get() = url()

        override fun client(policy: RetryPolicy): OkHttpClient =
            client(policy) {
                if (isStalled) addInterceptor(ImpatientOnce())
                if (isHttp2) protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE))
                if (isHttps) sslSocketFactory(Certificates.client.sslSocketFactory(), Certificates.client.trustManager)
            }

        override fun warmUp(client: OkHttpClient) {
            if (warmUp == null) return
            client.send(request()).close()
            received()
        }

        override fun count(): Int = server.requestCount - if (warmUp == null) 0 else 1
    }

    /** The first attempt gives up on a stalled server soon; a later one has all the time a loaded machine may need. */
    private class ImpatientOnce : Interceptor {
        private val attempts = AtomicInteger()

        override fun intercept(chain: Interceptor.Chain): Response {
            val isFirst = attempts.incrementAndGet() == 1
            return (if (isFirst) chain.withReadTimeout(100, TimeUnit.MILLISECONDS) else chain).proceed(chain.request())
        }
    }

    private class RefusedStage : Stage() {
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
        private val raw: RawServer,
        private val protocols: List<Protocol>,
    ) : Stage() {
        init {
            raw.start()
        }

        override val url: HttpUrl = url().newBuilder().port(raw.port).build()

        override fun client(policy: RetryPolicy): OkHttpClient =
            client(policy) {
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
