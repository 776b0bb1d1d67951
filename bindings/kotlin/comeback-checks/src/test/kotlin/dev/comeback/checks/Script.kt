// A decision vector as a driver's world: what each attempt comes to and when, and what the network does meanwhile.
@file:OptIn(InternalComebackApi::class)

package dev.comeback.checks

import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import java.io.CharConversionException
import java.io.EOFException
import java.io.File
import java.io.FileNotFoundException
import java.io.IOException
import java.net.ConnectException
import java.net.NoRouteToHostException
import java.net.ProtocolException
import java.net.SocketException
import java.net.SocketTimeoutException
import java.net.UnknownHostException
import javax.net.ssl.SSLHandshakeException
import javax.net.ssl.SSLPeerUnverifiedException

internal class Script(
    private val case: JsonObject,
) {
    class Told(
        val atNanos: Long,
        private val step: JsonObject,
    ) {
        fun tell(connectivity: ManualConnectivity) {
            val handle = step["handle"]?.jsonPrimitive?.long ?: 0
            when (step.text("event")) {
                "none_at_start" -> connectivity.noneAtStart()
                "available" -> connectivity.available(handle, step.flag("blocked"), step.flag("suspended"), step.flag("validated"))
                "capabilities" -> connectivity.capabilities(handle, step.flag("suspended"), step.flag("validated"))
                "blocked" -> connectivity.blocked(handle, step.flag("blocked"))
                "lost" -> connectivity.lost(handle)
                "failed" -> connectivity.failed()
                "restored" -> connectivity.restored()
            }
        }
    }

    /** @property told what the network does after it began, and before it came to its outcome */
    class Attempt(
        val told: List<Told>,
        val endsAtNanos: Long,
        private val outcome: JsonObject,
    ) {
        val status: Int? get() = outcome["status"]?.jsonPrimitive?.int
        val retryAfter: List<String> get() = outcome["retry_after"]?.jsonArray.orEmpty().map { it.jsonPrimitive.content }
        val date: String? get() = outcome.textOrNull("date")
        val shouldRetry: String? get() = outcome.textOrNull("should_retry")
        val overrule: OutcomeClass? get() = outcome.textOrNull("overrule")?.let { OutcomeClass.valueOf(it.uppercase()) }
        val error: String? get() = outcome.textOrNull("error")
        val lookUpNanos: Long? get() = if (error == "dns") outcome["look_up"]?.jsonPrimitive?.long ?: 0 else null

        fun exception(): IOException = checkNotNull(EXCEPTIONS[error]).invoke()
    }

    val name: String = case.text("name")
    private val steps = case.getValue("steps").jsonArray.map { it.jsonObject }
    private val request = case.getValue("request").jsonObject

    val seed: Long = case.getValue("seed").jsonPrimitive.long
    val policy: RetryPolicy by lazy { RetryPolicy.fromJson(case.getValue("policy").toString()) }
    val method: String = request.textOrNull("method") ?: "GET"
    val hasKey = request.flag("has_key")
    val isConditional = request.flag("conditional")
    val isOnlyIfCached = request.flag("only_if_cached")
    val hasBody = request.flag("has_body")
    val isReplayable = request["body_replayable"]?.jsonPrimitive?.boolean ?: true

    val before = ArrayList<Told>()
    val attempts = ArrayList<Attempt>()

    /** Told while the call waits. */
    val meanwhile = ArrayList<Told>()

    /** When the vector has attempts begin, in nanoseconds. */
    val begins = ArrayList<Long>()

    init {
        var told = before
        for (step in steps) {
            val at = step.getValue("now").jsonPrimitive.long
            when (step.text("do")) {
                "hub" -> {
                    told += Told(at, step)
                }

                "note" -> {
                    begins += at
                    told = ArrayList()
                }

                "outcome" -> {
                    attempts += Attempt(told, at, step.getValue("outcome").jsonObject)
                    told = meanwhile
                }
            }
        }
    }

    /** The clock of dates at instant 0, if the vector has one and it goes on evenly. */
    val wallAtZero: Long? = steps.firstNotNullOfOrNull { step -> step.long("wall_ms")?.minus(step.getValue("now").jsonPrimitive.long / MS) }

    /**
     * Whether real drivers can live through it: they ask when it is time, their clocks run forwards, and what comes back is something a client can
     * hand over. A limit of an attempt is another matter: each client has its own way.
     */
    val isForDrivers: Boolean
        get() {
            val times = steps.map { it.getValue("now").jsonPrimitive.long }
            val policy = case.getValue("policy").jsonObject
            return attempts.isNotEmpty() &&
                case["client_end"].let { it == null || it == JsonNull } &&
                case.getValue("began").jsonPrimitive.long == 0L &&
                times.all { it in 0..MAX_MS * MS } &&
                times == times.sorted() &&
                begins.first() == 0L &&
                begins.size <= attempts.size + 1 &&
                steps.none { it.text("do") == "interrupt" } &&
                !isAskedLate() &&
                steps.all {
                    it.long("wall_ms").let { wall ->
                        wall == null || wall - it.getValue("now").jsonPrimitive.long / MS == wallAtZero
                    }
                } &&
                LIMITS.none { it in policy } &&
                attempts.all { it.error == null || it.error in EXCEPTIONS } &&
                attempts.mapNotNull { it.lookUpNanos }.toSet().size <= 1 &&
                method in METHODS &&
                steps.none {
                    it.text("do") == "outcome" &&
                        it.getValue("outcome").jsonObject.run { flag("body_untouched") || flag("body_spent") }
                }
        }

    /** Whether the clock of a test's coroutines, which counts milliseconds, can show all its instants. */
    val isInMillis: Boolean get() = steps.all { it.getValue("now").jsonPrimitive.long % MS == 0L }

    /** How long a failed look-up stays cached, in seconds as the JVM is told it. */
    val lookUpSeconds: Long = attempts.firstNotNullOfOrNull { it.lookUpNanos }?.div(1_000 * MS) ?: 0

    private fun isAskedLate(): Boolean {
        var askAt: Long? = null
        for (step in steps) {
            if (step.text("do") == "resume" && step.getValue("now").jsonPrimitive.long > (askAt ?: Long.MAX_VALUE)) return true
            val decision = step.getValue("expect").jsonObject["decision"]?.jsonObject ?: continue
            askAt = decision.long("ask_at")
        }
        return false
    }

    /** Whether another path opens while an attempt is in flight: a driver that can give up an attempt then does what this vector does not say. */
    val isOvertaken: Boolean
        get() {
            var noted: Long? = null
            for (step in steps) {
                when (step.text("do")) {
                    "note" -> {
                        noted = step.getValue("network").jsonObject.long("path")
                    }

                    "outcome" -> {
                        noted = null
                    }

                    "hub" -> {
                        if (noted != null &&
                            step
                                .getValue("expect")
                                .jsonObject
                                .getValue("network")
                                .jsonObject
                                .long("path") != noted
                        ) {
                            return true
                        }
                    }
                }
            }
            return false
        }

    /** Whether it is about nothing that `retry { }` does not know: methods, keys, bodies, the server's explicit word. */
    val isForBlocks: Boolean
        get() =
            method == "GET" &&
                !isConditional &&
                !isOnlyIfCached &&
                !hasBody &&
                !hasKey &&
                attempts.none { it.shouldRetry != null || it.overrule != null }

    companion object {
        private const val MS = 1_000_000L

        /** A day and an hour. */
        private const val MAX_MS = 90_000_000L
        private val LIMITS = listOf("attempt_timeout", "cut_at_deadline", "connect_timeout")
        private val METHODS = setOf("GET", "HEAD", "PUT", "DELETE", "POST", "PATCH")

        /** What each kind of error looks like to a client that has only types. */
        private val EXCEPTIONS: Map<String?, () -> IOException> =
            mapOf(
                "dns" to { UnknownHostException() },
                "connect_refused" to { ConnectException() },
                "connect_unreachable" to { NoRouteToHostException() },
                "tls_broken_off" to { SSLHandshakeException(null) },
                "read_timeout" to { SocketTimeoutException() },
                "reset" to { SocketException("Connection reset") },
                "unexpected_end" to { EOFException() },
                "other_io" to { IOException() },
                "certificate" to { SSLPeerUnverifiedException(null) },
                "pinning" to { SSLPeerUnverifiedException("Certificate pinning failure!") },
                "protocol" to { ProtocolException() },
                "local_file" to { FileNotFoundException() },
                "serialisation" to { CharConversionException() },
                "unlisted" to { object : IOException() {} },
            )

        fun all(): List<Script> {
            val file = File(checkNotNull(System.getProperty("comeback.vectors")), "decisions.json")
            val cases =
                Json
                    .parseToJsonElement(file.readText())
                    .jsonObject
                    .getValue("cases")
                    .jsonArray
            return cases.map { Script(it.jsonObject) }
        }
    }
}

private fun JsonObject.text(name: String): String = getValue(name).jsonPrimitive.content

private fun JsonObject.textOrNull(name: String): String? = get(name)?.takeIf { it != JsonNull }?.jsonPrimitive?.content

private fun JsonObject.long(name: String): Long? = get(name)?.takeIf { it != JsonNull }?.jsonPrimitive?.long

private fun JsonObject.flag(name: String): Boolean = get(name)?.takeIf { it != JsonNull }?.jsonPrimitive?.boolean ?: false
