// Replays a scenario (see tests/vectors/README.md) through ManualConnectivity and CallSession.
package dev.comeback

import dev.comeback.driver.CallSession
import dev.comeback.driver.Limit
import dev.comeback.driver.NextStep
import dev.comeback.internal.NativeCore
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject

internal class Replay(
    private val scenario: JsonObject,
) {
    private val time = TestTime()
    private val connectivity = ManualConnectivity(time)
    private val heard = ArrayList<RetryEvent>()
    private val comeback = Comeback(connectivity, { heard += it }, time, NativeCore)
    private val session by lazy {
        CallSession(
            comeback = comeback,
            policy = RetryPolicy.fromJson(scenario.part("policy").toString()),
            label = null,
            facts = checkNotNull(scenario.part("request")).toRequestFacts(),
            began = scenario.number("began"),
            clientEnd = scenario.numberOrNull("client_end"),
            seed = scenario.number("seed"),
        )
    }

    /** The first difference, or null. */
    fun difference(): String? {
        try {
            scenario.getValue("steps").jsonArray.forEachIndexed { number, element ->
                val step = element.jsonObject
                val expected = comparable(checkNotNull(step.part("expect")))
                val answer = play(step)
                if (answer !=
                    expected
                ) {
                    return "${scenario.text("name")}, step $number: ${step.without("expect")}\n  expected $expected\n  answered $answer"
                }
            }
            return null
        } finally {
            connectivity.close()
        }
    }

    private fun play(step: JsonObject): JsonObject {
        time.now = step.number("now")
        time.wall = step.numberOrNull("wall_ms")
        heard.clear()
        return when (step.text("do")) {
            "hub" -> {
                val before = connectivity.snapshot
                tell(step)
                jsonOf("edge" to (connectivity.snapshot.epoch > before.epoch), "network" to connectivity.snapshot.toJson())
            }

            "note" -> {
                check(
                    connectivity.snapshot == step.part("network")?.toSnapshot(),
                ) { "the hub knows something else: ${connectivity.snapshot}" }
                session.noteAttempt()
                jsonOf("limit" to session.limit.toJson())
            }

            "outcome" -> {
                val outcome = checkNotNull(step.part("outcome"))
                val status = outcome.numberOrNull("status")
                if (status != null && status < 400 && outcome.textOrNull("overrule") == null) {
                    session.succeeded()
                    answer(NextStep.Deliver)
                } else {
                    answer(session.failed(outcome.toOutcome()))
                }
            }

            "resume" -> {
                answer(session.woken())
            }

            "interrupt" -> {
                answer(session.interrupted(step.flag("sent_nothing"), step.flag("body_untouched")))
            }

            else -> {
                error("unknown step: $step")
            }
        }
    }

    private fun tell(step: JsonObject) {
        val handle = step.numberOrNull("handle") ?: 0
        when (step.text("event")) {
            "none_at_start" -> connectivity.noneAtStart()
            "available" -> connectivity.available(handle, step.flag("blocked"), step.flag("suspended"), step.flag("validated"))
            "capabilities" -> connectivity.capabilities(handle, step.flag("suspended"), step.flag("validated"))
            "blocked" -> connectivity.blocked(handle, step.flag("blocked"))
            "lost" -> connectivity.lost(handle)
            "failed" -> connectivity.failed()
            "restored" -> connectivity.restored()
            "deliberate" -> connectivity.deliberate(step.flag("on"))
            else -> error("unknown event: $step")
        }
    }

    private fun answer(next: NextStep): JsonObject {
        val decision =
            when (next) {
                is NextStep.Deliver -> jsonOf("kind" to "deliver")
                is NextStep.Stop -> next.reason.named().let { (why, ms) -> jsonOf("kind" to "stop", "why" to why, "ms" to ms) }
                is NextStep.Sleep -> jsonOf("kind" to "sleep", "ask_at" to next.askAt)
                is NextStep.Go -> jsonOf("kind" to "go", "limit" to next.limit.toJson())
                is NextStep.Keep -> jsonOf("kind" to "keep", "ask_at" to next.askAt)
                is NextStep.Restart -> jsonOf("kind" to "restart", "limit" to next.limit.toJson())
            }
        return jsonOf("decision" to decision, "events" to heard.map { it.toJson() })
    }

    private fun Limit.toJson() = jsonOf("hard" to hardNanos, "inactivity" to inactivityNanos)

    private fun NetworkSnapshot.toJson() = jsonOf("state" to state.snake(), "since" to since, "epoch" to epoch, "path" to path)

    /** What a session answers: why a sleep sleeps and who woke it are in the events, and a class is in the event of a failure. */
    private fun comparable(expected: JsonObject): JsonObject {
        val decision = expected.part("decision") ?: return expected
        val left: Map<String, JsonElement> =
            when (decision.text("kind")) {
                "sleep" -> decision - "why"
                "go" -> decision - "by"
                "stop" -> jsonOf("ms" to null) + decision
                else -> decision
            }
        return JsonObject(expected - "class" + ("decision" to JsonObject(left)))
    }
}
