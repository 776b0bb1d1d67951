// HTTP/2: whatever becomes of every stream, a keyless POST that the server may have acted on is not sent again; and what it never looked at is.
package dev.comeback.okhttp

import dev.comeback.RetryEvent
import dev.comeback.RetryPolicy
import okhttp3.Protocol
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import java.io.IOException
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertTrue

internal class Http2FaultsTest {
    /** @param isProcessed the server has looked at the request, as far as the client can know */
    private enum class Fault(
        val isProcessed: Boolean = true,
    ) {
        REFUSED_STREAM(isProcessed = false),
        GOAWAY_BEFORE(isProcessed = false),
        GOAWAY_AFTER,
        RESET_AFTER_REQUEST,
        HEAD_THEN_RESET,
        STATUS_503,
    }

    /** Every request meets the same. */
    private class FaultServer(
        private val fault: Fault,
    ) : Http2Server() {
        val processed = AtomicInteger()

        override fun Answer.onHead() {
            when (fault) {
                Fault.REFUSED_STREAM -> reset(REFUSED)
                Fault.GOAWAY_BEFORE -> goAway(last = 0)
                else -> processed.incrementAndGet()
            }
        }

        override fun Answer.onWhole() {
            when (fault) {
                Fault.REFUSED_STREAM, Fault.GOAWAY_BEFORE -> {
                    // All is said.
                }

                Fault.GOAWAY_AFTER -> {
                    goAway()
                    end()
                }

                Fault.RESET_AFTER_REQUEST -> {
                    reset(INTERNAL)
                }

                Fault.HEAD_THEN_RESET -> {
                    say200(ends = false)
                    reset(INTERNAL)
                }

                Fault.STATUS_503 -> {
                    say503()
                }
            }
        }
    }

    private enum class Preset(
        val policy: RetryPolicy,
    ) {
        DEFAULT(RetryPolicy.DEFAULT),
        PAYMENT(RetryPolicy.PAYMENT),
    }

    @TestFactory
    fun `the server counts no keyless POST twice, and each request that it never looked at goes again`(): List<DynamicTest> =
        Driver.entries.flatMap { driver ->
            Fault.entries.flatMap { fault ->
                Preset.entries.flatMap { preset ->
                    listOf("GET", "POST").map { method ->
                        dynamicTest("$driver $fault $preset $method") { play(driver, fault, preset, method) }
                    }
                }
            }
        }

    private fun play(
        driver: Driver,
        fault: Fault,
        preset: Preset,
        method: String,
    ) = LoopbackFixture(driver = driver).use { fixture ->
        FaultServer(fault).use { server ->
            server.start()
            val calls = fixture.calls(preset.policy) { protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE)) }
            val request =
                (
                    if (method ==
                        "GET"
                    ) {
                        fixture.request()
                    } else {
                        fixture.post()
                    }
                ).newBuilder().url("http://127.0.0.1:${server.port}/").build()
            val outcome =
                try {
                    calls.readWhole(request)
                } catch (failure: IOException) {
                    failure
                }
            val end = fixture.heard<RetryEvent.Finished>().single()
            val most = checkNotNull(preset.policy.driverFacts).maxAttempts
            val attempts =
                when {
                    fault == Fault.HEAD_THEN_RESET -> 1
                    method == "GET" || !fault.isProcessed -> most
                    else -> 1
                }
            assertEquals(attempts, end.counted, "$outcome, ${fixture.events}")
            if (method == "POST" && fault.isProcessed) assertEquals(1, server.heads.get())
            // OkHttp tries a stream again that was refused; in each attempt, until it gives up the connection.
            assertTrue(server.heads.get() in attempts..attempts * OWN_TRIES, "${server.heads}")
            if (server.processed.get() > 0) assertTrue(end.mayHaveArrived)
            // Nobody listens to a GET's first attempt, and silence proves nothing.
            if (method == "POST") assertEquals(server.processed.get() > 0, end.mayHaveArrived)
        }
    }

    private companion object {
        const val INTERNAL = 2
        const val REFUSED = 7
        const val OWN_TRIES = 3
    }
}
