// The decision vectors through each driver: as many requests, and at the same virtual times, as the vectors say.
package dev.comeback.okhttp

import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import dev.comeback.testing.VirtualTime
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import kotlinx.serialization.json.longOrNull
import okhttp3.Headers
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.Response
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import okio.BufferedSink
import okio.blackholeSink
import okio.buffer
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.EOFException
import java.io.File
import java.io.FileNotFoundException
import java.io.IOException
import java.io.InvalidObjectException
import java.net.ConnectException
import java.net.NoRouteToHostException
import java.net.ProtocolException
import java.net.SocketException
import java.net.SocketTimeoutException
import java.net.UnknownHostException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.atomic.AtomicInteger
import javax.net.ssl.SSLPeerUnverifiedException
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

@ParameterizedClass
@EnumSource(Driver::class)
@Timeout(120)
internal class DecisionVectorsTest(
    private val driver: Driver,
) {
    private class AppsOwn : IOException("session expired")

    private class Body(
        private val isReplayable: Boolean,
    ) : RequestBody() {
        override fun contentType(): MediaType? = null

        override fun isOneShot() = !isReplayable

        override fun writeTo(sink: BufferedSink) {
            sink.writeUtf8("amount=100")
        }
    }

    private class Attempt(
        val starts: Long,
        val ends: Long,
        val outcome: JsonObject,
    )

    private fun JsonObject.part(name: String) = this[name] as? JsonObject

    private fun JsonObject.text(name: String) = this[name]?.takeIf { it !is JsonNull }?.jsonPrimitive?.content

    private fun JsonObject.number(name: String) = getValue(name).jsonPrimitive.long

    private fun JsonObject.flag(
        name: String,
        default: Boolean = false,
    ) = this[name]?.jsonPrimitive?.boolean ?: default

    private fun failure(kind: String): IOException? =
        when (kind) {
            "dns" -> UnknownHostException()
            "reset" -> SocketException("Connection reset")
            "read_timeout" -> SocketTimeoutException()
            "connect_refused" -> ConnectException()
            "connect_unreachable" -> NoRouteToHostException()
            "certificate" -> SSLPeerUnverifiedException("Hostname not verified")
            "pinning" -> SSLPeerUnverifiedException("Certificate pinning failure!")
            "protocol" -> ProtocolException("too many redirects")
            "local_file" -> FileNotFoundException()
            "serialisation" -> InvalidObjectException("")
            "unlisted" -> AppsOwn()
            "unexpected_end" -> EOFException()
            "stream_reset" -> StreamResetException(ErrorCode.CANCEL)
            "other_io" -> IOException()
            else -> null
        }

    /** What a driver can be made to live through; null for a case that only a core can: it stops half-way, or asks at odd times. */
    private fun attemptsOf(case: JsonObject): List<Attempt>? {
        if (case["client_end"] !is JsonNull) return null
        val steps = case.getValue("steps").jsonArray.map { it.jsonObject }
        val attempts = ArrayList<Attempt>()
        var noted: JsonObject? = null
        var goes = case.number("began")
        var askAt = Long.MIN_VALUE
        var before = Long.MIN_VALUE
        var isOver = false
        val changes = steps.filter { it.text("do") == "hub" }.map { it.number("now") }.toSet()
        for (step in steps) {
            val now = step.number("now")
            val decision = step.part("expect")?.part("decision")
            when (step.text("do")) {
                "hub" -> {
                    if (now == before && attempts.isNotEmpty()) return null
                }

                "note" -> {
                    if (now != goes) return null
                    noted = step
                }

                "outcome" -> {
                    val outcome = step.part("outcome")!!
                    val isUnknown = outcome.text("error")?.let { failure(it) == null } ?: false
                    if (isUnknown || outcome.flag("body_untouched") ||
                        (outcome["look_up"]?.jsonPrimitive?.longOrNull ?: 0) != 0L
                    ) {
                        return null
                    }
                    // The factory would begin such an attempt anew.
                    if (noted!!.part("network")!!.number("path") != step.part("network")!!.number("path")) return null
                    attempts += Attempt(goes, now, outcome)
                }

                "resume" -> {
                    if (now != askAt && now !in changes) return null
                    if (decision!!.text("kind") == "go") goes = now
                }

                else -> {
                    return null
                }
            }
            if (decision?.text("kind") == "sleep") askAt = decision.number("ask_at").coerceAtLeast(now)
            isOver = isOver || decision?.text("kind") in setOf("deliver", "stop")
            before = now
        }
        return attempts.takeIf { isOver }
    }

    private fun Ground.tell(step: JsonObject) {
        val handle = step["handle"]?.jsonPrimitive?.longOrNull ?: 0
        when (step.text("event")) {
            "none_at_start" -> connectivity.noneAtStart()
            "available" -> connectivity.available(handle, step.flag("blocked"), step.flag("suspended"), step.flag("validated"))
            "capabilities" -> connectivity.capabilities(handle, step.flag("suspended"), step.flag("validated"))
            "blocked" -> connectivity.blocked(handle, step.flag("blocked"))
            "lost" -> connectivity.lost(handle)
            "failed" -> connectivity.failed()
            else -> connectivity.restored()
        }
    }

    private fun Ground.requestOf(facts: JsonObject): Request =
        request(
            facts.text("method") ?: "GET",
            if (facts.flag("has_body") ||
                facts.text("method") in setOf("POST", "PUT", "PATCH")
            ) {
                Body(facts.flag("body_replayable", default = true))
            } else {
                null
            },
        ) {
            if (facts.flag("has_key")) header(Ground.KEY, "the caller's")
            if (facts.flag("conditional")) header("If-Match", "\"v1\"")
            if (facts.flag("only_if_cached")) header("Cache-Control", "only-if-cached")
        }

    private fun response(
        request: Request,
        outcome: JsonObject,
        shouldRetryHeader: String?,
    ): Response {
        val headers = Headers.Builder()
        outcome["retry_after"]?.jsonArray?.forEach { headers.addUnsafeNonAscii("Retry-After", it.jsonPrimitive.content) }
        outcome.text("date")?.let { headers["Date"] = it }
        outcome.text("should_retry")?.let { headers[shouldRetryHeader!!] = it }
        return Response
            .Builder()
            .request(request)
            .protocol(Protocol.HTTP_1_1)
            .code(outcome.number("status").toInt())
            .message("")
            .headers(headers.build())
            .build()
    }

    /** When requests went out. */
    private fun driven(
        case: JsonObject,
        attempts: List<Attempt>,
    ): List<Long> {
        val clock = VirtualTime()
        attempts
            .firstNotNullOfOrNull {
                it.outcome
                    .text("wall_ms")
                    ?.toLong()
                    ?.minus(it.ends / 1_000_000)
            }?.let {
                clock.wallMillisAtZero =
                    it
            }
        return Ground(clock = clock, driver = driver, configureComeback = { seeds = { case.number("seed") } }).use { ground ->
            val began = case.number("began")
            for (step in case
                .getValue("steps")
                .jsonArray
                .map { it.jsonObject }
                .filter { it.text("do") == "hub" }) {
                val now = step.number("now")
                if (now <= began) {
                    clock.advance(maxOf(0, now - clock.nanos()))
                    ground.tell(step)
                } else {
                    clock.at(now) { ground.tell(step) }
                }
            }
            clock.advance(began - clock.nanos())
            val starts = CopyOnWriteArrayList<Long>()
            val made = AtomicInteger()
            val shouldRetryHeader = case.part("policy")?.text("should_retry_header")
            val wire =
                Interceptor { chain ->
                    starts += clock.nanos()
                    val attempt = attempts.getOrNull(made.getAndIncrement()) ?: error("one attempt too many")
                    chain.request().body?.writeTo(blackholeSink().buffer())
                    clock.advance(maxOf(0, attempt.ends - clock.nanos()))
                    attempt.outcome.text("error")?.let { throw failure(it)!! }
                    response(chain.request(), attempt.outcome, shouldRetryHeader)
                }
            val overrules = { _: Request, _: Response?, _: IOException? ->
                attempts[made.get() - 1].outcome.text("overrule")?.let { OutcomeClass.valueOf(it.uppercase()) }
            }
            val policy = RetryPolicy.fromJson(case.getValue("policy").toString())
            val calls =
                ground.calls(policy, configure = { classify = overrules }) {
                    dns { throw UnknownHostException(it) }
                    addInterceptor(wire)
                }
            calls.outcomeOf(ground.requestOf(case.part("request")!!))
            starts.toList()
        }
    }

    @Test
    fun `requests go out when the vectors say, and no more of them`() {
        val file = File(System.getProperty("comeback.vectors"), "decisions.json")
        val cases =
            Json
                .parseToJsonElement(file.readText())
                .jsonObject
                .getValue("cases")
                .jsonArray
                .map { it.jsonObject }
        var driven = 0
        val differences =
            cases.mapNotNull { case ->
                val attempts = attemptsOf(case) ?: return@mapNotNull null
                driven++
                val starts = driven(case, attempts)
                "${case.text(
                    "name",
                )}: ${attempts.map { it.starts }} expected, $starts driven".takeIf { starts != attempts.map { it.starts } }
            }
        assertEquals(emptyList(), differences)
        assertTrue(driven >= 60, "only $driven cases were driven")
    }
}
