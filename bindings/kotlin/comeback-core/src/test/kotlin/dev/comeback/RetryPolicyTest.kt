// How policies are named, built and refused in Kotlin; what is valid is the core's to say.
package dev.comeback

import dev.comeback.driver.NextStep
import dev.comeback.ffi.CompiledPresets
import dev.comeback.ffi.provokePanic
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.TestFactory
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue
import kotlin.time.Duration
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

class RetryPolicyTest {
    private fun assertSamePolicy(
        expected: RetryPolicy,
        policy: RetryPolicy,
    ) {
        assertEquals(expected.toString(), policy.toString())
        assertContentEquals(assertNotNull(expected.compiled).bytes, assertNotNull(policy.compiled).bytes)
    }

    private fun preset(name: String) =
        when (name) {
            "default" -> RetryPolicy.DEFAULT
            "payment" -> RetryPolicy.PAYMENT
            "read" -> RetryPolicy.READ
            "batch" -> RetryPolicy.BATCH
            else -> error("unknown preset: $name")
        }

    @TestFactory
    fun `a preset is what it should be`(): List<DynamicTest> =
        Vectors.tests("policy.json", "presets") { case ->
            assertSamePolicy(RetryPolicy.fromJson(case.part("full").toString()), preset(case.text("preset")))
        }

    @TestFactory
    fun `a valid policy is taken, and what is missing has its default`(): List<DynamicTest> =
        Vectors.tests("policy.json", "valid") { case ->
            assertSamePolicy(RetryPolicy.fromJson(case.part("full").toString()), RetryPolicy.fromJson(case.part("policy").toString()))
        }

    @TestFactory
    fun `an invalid policy is refused by field, value and rule`(): List<DynamicTest> =
        Vectors.tests("policy.json", "invalid") { case ->
            val refused = assertFailsWith<PolicyException> { RetryPolicy.fromJson(case.part("policy").toString()) }
            assertEquals(case.text("field"), refused.field)
            assertTrue(refused.rule.isNotEmpty())
            assertEquals("${refused.field} = ${refused.value}: ${refused.rule}", refused.message)
        }

    @TestFactory
    fun `text that is no JSON object is refused`(): List<DynamicTest> =
        Vectors.tests("policy.json", "not_json") { case ->
            assertFailsWith<PolicyException> { RetryPolicy.fromJson(case.text("text")) }
        }

    @TestFactory
    fun `a field that is there twice is refused`(): List<DynamicTest> =
        Vectors.tests("policy.json", "duplicates") { case ->
            assertEquals(case.text("field"), assertFailsWith<PolicyException> { RetryPolicy.fromJson(case.text("text")) }.field)
        }

    @TestFactory
    fun `remote configuration is forgiven`(): List<DynamicTest> =
        Vectors.tests("policy.json", "forgiving") { case ->
            val fallback = preset(case.text("fallback"))
            val forgiven = RetryPolicy.fromJsonOr(case.text("text"), fallback)
            assertEquals(case.texts("ignored"), forgiven.ignored)
            assertEquals(case.textOrNull("problem"), forgiven.problem?.field)
            val full = case.part("full")
            if (full ==
                null
            ) {
                assertSame(fallback, forgiven.policy)
            } else {
                assertSamePolicy(RetryPolicy.fromJson(full.toString()), forgiven.policy)
            }
        }

    @TestFactory
    fun `drivers learn what they need before a first attempt`(): List<DynamicTest> =
        Vectors.tests("policy.json", "driver_facts") { case ->
            val facts = assertNotNull(RetryPolicy.fromJson(case.part("policy").toString()).driverFacts)
            val methods = listOf("GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "POST", "PATCH", "CONNECT", "get")
            assertEquals(case.texts("repeatable").toSet(), methods.filter(facts::mayRepeat).toSet())
            assertEquals(case.texts("make_key").toSet(), methods.filter(facts::makesKey).toSet())
            assertEquals(case.text("key_header"), facts.keyHeader)
            assertEquals(case.text("key_form") == "quoted", facts.keyQuoted)
            assertEquals(case.textOrNull("should_retry_header"), facts.shouldRetryHeader)
            assertEquals(case.numberOrNull("attempt_timeout"), facts.attemptTimeoutNanos)
            assertEquals(case.numberOrNull("connect_timeout"), facts.connectTimeoutNanos)
            assertEquals(case.numberOrNull("cut_after"), facts.cutAfterNanos)
            assertEquals(case.text("client_resends") == "off", facts.clientResendsOff)
            assertEquals(case.numberOrNull("read_body"), facts.readBodyBytes)
            assertEquals(case.flag("ignores_network"), facts.ignoresNetwork)
            assertEquals(case.number("max_attempts").toInt(), facts.maxAttempts)
        }

    @Test
    fun `every field can be set by its property`() {
        val built =
            RetryPolicy {
                maxAttempts = 7
                maxElapsed = 2.minutes
                cutAtDeadline = true
                attemptTimeout = 5.seconds
                connectTimeout = 500.milliseconds
                base = 250.milliseconds
                factor = 1.5
                cap = 30.seconds
                overload(base = 2.seconds, factor = 3.0, cap = 60.seconds)
                jitter = Jitter.DECORRELATED
                retryStatuses = setOf(429, 503)
                repeat = Repeat.NEVER
                keyHeader = "X-Key"
                keyForm = KeyForm.QUOTED
                makeKey = true
                clientResends = ClientResends.OFF
                shouldRetryHeader = "x-should-retry"
                wake = Wake.TRANSPORT
                wakeSpread = 3.seconds
                offline = Offline.FAIL_FAST
                offlineProbe = 1.minutes
                readBody = 65_536
            }
        val json =
            """
            {"max_attempts": 7, "max_elapsed": 120000, "cut_at_deadline": true, "attempt_timeout": 5000, "connect_timeout": 500, "base": 250,
             "factor": 1.5, "cap": 30000, "overload": {"base": 2000, "factor": 3, "cap": 60000}, "jitter": "decorrelated",
             "retry_statuses": [429, 503], "repeat": "never", "key": {"header": "X-Key", "form": "quoted", "make": true},
             "client_resends": "off", "should_retry_header": "x-should-retry", "wake": "transport", "wake_spread": 3000,
             "offline": "fail_fast", "offline_probe": 60000, "read_body": 65536}
            """
        assertSamePolicy(RetryPolicy.fromJson(json), built)
    }

    @Test
    fun `every value of a choice is one the core knows`() {
        RetryPolicy {
            Jitter.entries.forEach { choice -> RetryPolicy { jitter = choice } }
            Repeat.entries.forEach { choice -> RetryPolicy { repeat = choice } }
            KeyForm.entries.forEach { choice -> RetryPolicy { keyForm = choice } }
            ClientResends.entries.forEach { choice -> RetryPolicy { clientResends = choice } }
            Wake.entries.forEach { choice -> RetryPolicy { wake = choice } }
            Offline.entries.forEach { choice -> RetryPolicy { offline = choice } }
        }
    }

    @Test
    fun `every class, kind, state and reason has the same name in the core`() {
        fun <T : Enum<T>> names(values: List<T>) = values.map { it.name }
        assertEquals(names(dev.comeback.ffi.OutcomeClass.entries), names(OutcomeClass.entries))
        assertEquals(names(dev.comeback.ffi.FailureKind.entries), names(FailureKind.entries))
        assertEquals(names(dev.comeback.ffi.NetworkState.entries), names(NetworkState.entries))
        assertEquals(names(dev.comeback.ffi.WaitReason.entries), names(WaitReason.entries))
        assertEquals(names(dev.comeback.ffi.WokenBy.entries), names(WokenBy.entries))
    }

    @Test
    fun `null means none`() {
        val policy =
            RetryPolicy(RetryPolicy { attemptTimeout = 1.seconds }) {
                attemptTimeout = null
                offlineProbe = null
                noOverload()
            }
        assertSamePolicy(RetryPolicy.fromJson("""{"offline_probe": null}"""), policy)
    }

    @Test
    fun `a builder tells what was set, and null for what was not`() {
        val builder = RetryPolicy.builder()
        assertNull(builder.maxAttempts)
        assertNull(builder.maxElapsed)
        assertNull(builder.keyForm)
        builder.maxAttempts = 3
        builder.maxElapsedMillis = 1_500
        builder.jitter = Jitter.EQUAL
        builder.keyForm = KeyForm.QUOTED
        builder.keyHeader = "X-Key"
        assertEquals(3, builder.maxAttempts)
        assertEquals(1_500.milliseconds, builder.maxElapsed)
        assertEquals(1_500, builder.maxElapsedMillis)
        assertEquals(Jitter.EQUAL, builder.jitter)
        assertEquals(KeyForm.QUOTED, builder.keyForm)
        assertEquals("X-Key", builder.keyHeader)
    }

    @Test
    fun `a policy is built over another one, which stays as it was`() {
        val first = RetryPolicy(RetryPolicy.PAYMENT) { makeKey = true }
        val second = RetryPolicy(first) { keyForm = KeyForm.QUOTED }
        assertEquals(false, first.driverFacts?.keyQuoted)
        assertEquals(listOf(true, true, true), second.driverFacts?.let { listOf(it.keyQuoted, it.makesKey("POST"), it.clientResendsOff) })
    }

    @Test
    fun `a policy without presets behind it cannot be built over`() {
        for (base in listOf(RetryPolicy.OFF, RetryPolicy.fromJson("{}"))) {
            assertEquals("base", assertFailsWith<PolicyException> { RetryPolicy(base) {} }.field)
        }
    }

    @Test
    fun `what cannot be is refused when it is built, whatever its type`() {
        fun field(configure: RetryPolicy.Builder.() -> Unit) = assertFailsWith<PolicyException> { RetryPolicy(configure = configure) }.field
        assertEquals("max_attempts", field { maxAttempts = Int.MAX_VALUE })
        assertEquals("max_attempts", field { maxAttempts = -1 })
        assertEquals("max_attempts", field { maxAttempts = null })
        assertEquals("max_elapsed", field { maxElapsed = Duration.INFINITE })
        assertEquals("max_elapsed", field { maxElapsed = (-1).seconds })
        assertEquals("max_elapsed", field { maxElapsed = 25.hours })
        assertEquals("max_elapsed", field { maxElapsedMillis = Long.MAX_VALUE })
        assertEquals("base", field { base = 1_500.microseconds })
        assertEquals("base", field { base = 9.seconds })
        assertEquals("factor", field { factor = Double.NaN })
        assertEquals("factor", field { factor = Double.POSITIVE_INFINITY })
        assertEquals("factor", field { factor = 1.00001 })
        assertEquals("overload.factor", field { overload(1.seconds, 0.5, 2.seconds) })
        assertEquals("overload.base", field { overloadMillis(0, 2.0, 2_000) })
        assertEquals("retry_statuses", field { retryStatuses = setOf(200) })
        assertEquals("key.header", field { keyHeader = "a header" })
        assertEquals("should_retry_header", field { shouldRetryHeader = "quote\" back\\slash \u0000 line\n" })
        assertEquals("policy", field { shouldRetryHeader = "half a surrogate pair \ud800" })
        assertEquals("wake_spread", field { wakeSpread = 1.hours })
        assertEquals("offline_probe", field { offlineProbe = 1.milliseconds })
    }

    @Test
    fun `a refusal names the value and the rule`() {
        val refused = assertFailsWith<PolicyException> { RetryPolicy { maxAttempts = 0 } }
        assertEquals("0", refused.value)
        assertTrue("100" in refused.rule, refused.rule)
        val long = assertFailsWith<PolicyException> { RetryPolicy { base = 9.seconds } }
        assertEquals("base = 9000 ms: must be at most cap, which is 8000 ms", long.message)
        val cut = assertFailsWith<PolicyException> { RetryPolicy.fromJson("{\n  \"cap\" 4000\n}") }
        assertTrue("line 2 column 9" in cut.rule, cut.rule)
    }

    @Test
    fun `a preset needs no native call`() {
        assertSame(CompiledPresets.READ, RetryPolicy.READ.compiled)
        assertNull(RetryPolicy.OFF.driverFacts)
        assertEquals("off", RetryPolicy.OFF.toString())
    }

    @Test
    fun `people can read a policy and its schedule`() {
        val policy =
            RetryPolicy {
                jitter = Jitter.NONE
                maxAttempts = 3
            }
        assertTrue("3 attempts" in policy.toString(), policy.toString())
        assertTrue("2000 ms" in policy.schedule(), policy.schedule())
    }

    @Test
    fun `a policy that panics while it is built lets requests pass`() {
        val builder = RetryPolicy.Builder(RetryPolicy.READ, TestCore { provokePanic() })
        val policy = builder.build()
        assertNull(policy.driverFacts)
        val forgiven = RetryPolicy.forgive(TestCore { provokePanic() }, "{}", RetryPolicy.READ)
        assertSame(RetryPolicy.READ, forgiven.policy)
        assertIs<NextStep.Stop>(World().session(policy).failed(World.RESET))
    }
}
