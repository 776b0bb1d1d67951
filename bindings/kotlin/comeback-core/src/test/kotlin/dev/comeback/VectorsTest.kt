// The vectors that bear on Kotlin: what a session, a hub and a report make of them.
package dev.comeback

import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.RequestFacts
import dev.comeback.internal.NativeCore
import dev.comeback.internal.isLoopback
import dev.comeback.internal.toEvent
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.TestFactory
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertNull

class VectorsTest {
    @TestFactory
    fun `a hub's script leaves the snapshots it should`(): List<DynamicTest> =
        Vectors.tests("hub.json") { case -> assertNull(Replay(case).difference()) }

    @TestFactory
    fun `a call is decided step by step as it should`(): List<DynamicTest> =
        Vectors.tests("decisions.json") { case -> assertNull(Replay(case).difference()) }

    @TestFactory
    fun `a call's events fold into its report`(): List<DynamicTest> =
        Vectors.tests("reports.json") { case ->
            val events = case.getValue("events").jsonArray.map { it.jsonObject.toEvent() }
            assertEquals(case.part("report"), RetryReport.of(events).toJson())
            assertEquals(case.text("text"), RetryReport.of(events).toString())
        }

    @TestFactory
    fun `an outcome has the class it should`(): List<DynamicTest> =
        Vectors.tests("classification.json") { case ->
            val told = tell(case, checkNotNull(case.part("outcome")).toOutcome())
            when (val expected = constant<OutcomeClass>(case.text("class"))) {
                OutcomeClass.SUCCESS, OutcomeClass.PERMANENT_STATUS -> assertIs<NextStep.Deliver>(told.step)
                else -> assertEquals(expected, told.failed().outcome)
            }
        }

    @TestFactory
    fun `a host that is this machine is known by its name`(): List<DynamicTest> =
        Vectors.tests("loopback.json") { case -> assertEquals(case.flag("is_loopback"), isLoopback(case.text("host"))) }

    @TestFactory
    fun `a request that may have been sent goes again only if it may`(): List<DynamicTest> =
        Vectors.tests("repeat.json") { case ->
            val told = tell(case, Outcome.failure(FailureKind.RESET))
            val replayable = case.part("request")?.flag("body_replayable", default = true) ?: true
            val expected = if (!case.flag("may_repeat")) StopReason.NotRepeatable else StopReason.BodyNotReplayable.takeIf { !replayable }
            assertEquals(expected, (told.step as? NextStep.Stop)?.reason)
            if (expected == null) assertIs<NextStep.Sleep>(told.step)
        }

    @TestFactory
    fun `an attempt goes again only if all that it may have sent may`(): List<DynamicTest> =
        Vectors.tests("evidence.json") { case ->
            val told = tell(case, checkNotNull(case.part("outcome")).toOutcome())
            assertEquals(case.textOrNull("stop"), (told.step as? NextStep.Stop)?.reason?.toString())
            val session = told.session
            session.cancelled(CancelKind.CALLER)
            assertEquals(case.flag("may_have_arrived"), session.report?.mayHaveArrived)
        }

    @TestFactory
    fun `Retry-After is understood across the boundary`(): List<DynamicTest> =
        Vectors.tests("retry_after.json") { case ->
            val outcome = Outcome.response(503, case.texts("lines"), case.textOrNull("date"))
            val policy = RetryPolicy.fromJson("""{"max_elapsed": $DAY_MS, "jitter": "none"}""")
            val told = tell(case, outcome, policy, case.numberOrNull("wall_ms"))
            val hint = case.numberOrNull("hint") ?: 0
            if (hint <= DAY_MS * MS - 100 * MS) {
                assertEquals(
                    hint,
                    told.heard
                        .filterIsInstance<RetryEvent.WaitPlanned>()
                        .singleOrNull()
                        ?.floorNanos
                        ?: hint.takeIf { told.reasonIsElapsed() },
                )
            } else {
                assertEquals(StopReason.ServerWaitTooLong(hint / MS), assertIs<NextStep.Stop>(told.step).reason)
            }
        }

    private class Told(
        val session: CallSession,
        val step: NextStep,
        val heard: List<RetryEvent>,
    ) {
        fun failed(): RetryEvent.AttemptFailed = heard.filterIsInstance<RetryEvent.AttemptFailed>().single()

        /** A floor that fits, with a jitter that does not. */
        fun reasonIsElapsed(): Boolean = (step as? NextStep.Stop)?.reason == StopReason.Elapsed
    }

    /** The first failure of a call that began at 0. */
    private fun tell(
        case: JsonObject,
        outcome: Outcome,
        policy: RetryPolicy = RetryPolicy.fromJson(case.part("policy")?.toString() ?: "{}"),
        wall: Long? = null,
    ): Told {
        val heard = ArrayList<RetryEvent>()
        val time = TestTime(wall = wall)
        val comeback = Comeback(ManualConnectivity(time), { heard += it }, time, NativeCore)
        val facts = case.part("request")?.toRequestFacts() ?: RequestFacts("GET")
        val session = CallSession(comeback, policy, null, facts, seed = 1)
        session.noteAttempt()
        return Told(session, session.failed(outcome), heard)
    }

    private companion object {
        const val MS = 1_000_000L
        const val DAY_MS = 86_400_000L
    }
}
