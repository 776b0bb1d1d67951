// The vectors that Rust's tests read too, and events in their form.
package dev.comeback

import dev.comeback.driver.InnerRequest
import dev.comeback.driver.Outcome
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.Promise
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.RequestHead
import dev.comeback.driver.promise
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import org.junit.jupiter.api.DynamicTest
import java.io.File

internal object Vectors {
    val folder = File(checkNotNull(System.getProperty("comeback.vectors")) { "comeback.vectors is not set" })

    fun cases(
        file: String,
        list: String = "cases",
    ): List<JsonObject> =
        Json
            .parseToJsonElement(File(folder, file).readText())
            .jsonObject
            .getValue(list)
            .jsonArray
            .map { it.jsonObject }

    /** A test for each case. */
    fun tests(
        file: String,
        list: String = "cases",
        test: (JsonObject) -> Unit,
    ): List<DynamicTest> = cases(file, list).map { case -> DynamicTest.dynamicTest(case.text("name")) { test(case) } }
}

internal fun JsonObject.text(name: String): String = getValue(name).jsonPrimitive.content

internal fun JsonObject.textOrNull(name: String): String? = present(name)?.jsonPrimitive?.content

internal fun JsonObject.number(name: String): Long = getValue(name).jsonPrimitive.long

internal fun JsonObject.numberOrNull(name: String): Long? = present(name)?.jsonPrimitive?.long

internal fun JsonObject.flag(
    name: String,
    default: Boolean = false,
): Boolean = present(name)?.jsonPrimitive?.boolean ?: default

internal fun JsonObject.texts(name: String): List<String> = present(name)?.jsonArray.orEmpty().map { it.jsonPrimitive.content }

internal fun JsonObject.part(name: String): JsonObject? = present(name)?.jsonObject

private fun JsonObject.present(name: String): JsonElement? = get(name)?.takeIf { it !is JsonNull }

/** An enum constant from its name in `snake_case`. */
internal inline fun <reified T : Enum<T>> constant(name: String): T = enumValueOf<T>(name.uppercase())

internal fun Enum<*>.snake(): String = name.lowercase()

internal fun jsonOf(vararg fields: Pair<String, Any?>): JsonObject =
    JsonObject(
        fields.associate { (name, value) ->
            name to
                when (value) {
                    null -> JsonNull
                    is JsonElement -> value
                    is Number -> JsonPrimitive(value)
                    is Boolean -> JsonPrimitive(value)
                    is List<*> -> JsonArray(value.map { it as JsonElement })
                    else -> JsonPrimitive(value.toString())
                }
        },
    )

internal fun JsonObject.toRequestFacts(): RequestFacts =
    RequestFacts(
        head = toRequestHead(),
        hasBody = flag("has_body"),
        bodyReplayable = flag("body_replayable", default = true),
    )

internal fun JsonObject.toRequestHead(): RequestHead =
    RequestHead(
        method = textOrNull("method") ?: "GET",
        key = if (flag("has_key")) listOf("key-1") else emptyList(),
        conditions = if (flag("conditional")) listOf("\"tag\"") else emptyList(),
        cacheControl = if (flag("only_if_cached")) listOf("only-if-cached") else emptyList(),
    )

/** What layers further in told of. */
private fun JsonObject.toInner(): List<InnerRequest> =
    OuterAttempt()
        .apply {
            for (told in present("inner")?.jsonArray.orEmpty().map { it.jsonObject }) {
                val policy = told.textOrNull("repeat")?.let { RetryPolicy.fromJson("""{"repeat": "$it"}""") }
                request(policy, told.toRequestHead(), told.flag("key_is_made")).ended(told.flag("sent_nothing"))
            }
        }.innerRequests

internal fun JsonObject.toOutcome(): Outcome {
    val overrule = textOrNull("overrule")?.let { constant<OutcomeClass>(it) }
    val error = textOrNull("error")
    return if (error == null) {
        Outcome.response(
            getValue("status").jsonPrimitive.int,
            texts("retry_after"),
            textOrNull("date"),
            textOrNull("should_retry"),
            flag("body_untouched"),
            overrule,
            part("went_out")?.toRequestHead(),
            toInner(),
        )
    } else {
        val kind = constant<FailureKind>(error)
        Outcome.failure(
            kind,
            null,
            numberOrNull("look_up") ?: 0,
            flag("sent_nothing", default = kind.promise == Promise.NEVER_SENT),
            flag("body_untouched"),
            overrule,
            part("went_out")?.toRequestHead(),
            toInner(),
            flag("body_spent"),
        )
    }
}

internal fun JsonObject.toSnapshot(): NetworkSnapshot =
    NetworkSnapshot(constant(text("state")), number("since"), number("epoch"), number("path"))

internal fun JsonObject.toEvent(): RetryEvent =
    when (text("event")) {
        "attempt_failed" -> {
            val status = text("what").toIntOrNull()
            val failure = if (status == null) constant<FailureKind>(text("what")) else null
            RetryEvent.AttemptFailed(1, null, constant(text("class")), status, failure, flag("counted"))
        }

        "attempt_abandoned" -> {
            RetryEvent.AttemptAbandoned(1, null)
        }

        "wait_planned" -> {
            RetryEvent.WaitPlanned(1, null, number("planned"), number("window"), number("floor"), constant(text("why")))
        }

        "resumed" -> {
            RetryEvent.Resumed(1, null, number("planned"), number("effective"), constant(text("by")))
        }

        "final" -> {
            RetryEvent.Finished(1, null, toReason(), number("counted").toInt(), number("elapsed"), flag("may_have_arrived", default = true))
        }

        else -> {
            error("unknown event: $this")
        }
    }

private fun JsonObject.toReason(): StopReason? =
    when (val name = text("reason")) {
        "done" -> null
        "attempts" -> StopReason.Attempts
        "elapsed" -> StopReason.Elapsed
        "server_wait_too_long" -> StopReason.ServerWaitTooLong(number("ms"))
        "not_repeatable" -> StopReason.NotRepeatable
        "body_not_replayable" -> StopReason.BodyNotReplayable
        "permanent" -> StopReason.Permanent
        "offline" -> StopReason.Offline
        "budget" -> StopReason.Budget
        "breaker" -> StopReason.Breaker
        else -> error("unknown reason: $name")
    }

/** The reason's name and, where it has one, its `ms`. */
internal fun StopReason?.named(): Pair<String, Long?> =
    if (this is StopReason.ServerWaitTooLong) "server_wait_too_long" to ms else (this?.toString() ?: "done") to null

internal fun RetryEvent.toJson(): JsonObject =
    when (this) {
        is RetryEvent.AttemptFailed -> {
            jsonOf("event" to "attempt_failed", "class" to outcome.snake(), "what" to what(status, failure), "counted" to counted)
        }

        is RetryEvent.AttemptAbandoned -> {
            jsonOf("event" to "attempt_abandoned")
        }

        is RetryEvent.WaitPlanned -> {
            jsonOf(
                "event" to "wait_planned",
                "planned" to plannedNanos,
                "window" to windowNanos,
                "floor" to floorNanos,
                "why" to why.snake(),
            )
        }

        is RetryEvent.Resumed -> {
            jsonOf("event" to "resumed", "planned" to plannedNanos, "effective" to effectiveNanos, "by" to by.snake())
        }

        is RetryEvent.Finished -> {
            reason.named().let { (name, ms) ->
                jsonOf("event" to "final", "reason" to name, "ms" to ms, "counted" to counted, "elapsed" to elapsedNanos)
            }
        }

        is RetryEvent.Unavailable -> {
            jsonOf("event" to "unavailable")
        }

        is RetryEvent.SetupProblem -> {
            jsonOf("event" to "setup_problem")
        }
    }

internal fun what(
    status: Int?,
    failure: FailureKind?,
): String = failure?.snake() ?: status.toString()

internal fun RetryReport.toJson(): JsonObject =
    jsonOf(
        "attempts" to
            attempts.map { attempt ->
                jsonOf(
                    "class" to attempt.outcome.snake(),
                    "what" to what(attempt.status, attempt.failure),
                    "counted" to attempt.counted,
                    "waits" to attempt.waits.map { it.toJson().without("event") },
                    "resumed" to attempt.resumed?.toJson()?.without("event"),
                )
            },
        "abandoned" to abandoned,
        "final" to finished?.toJson()?.without("event"),
    )

internal fun JsonObject.without(name: String): JsonObject = JsonObject(this - name)
