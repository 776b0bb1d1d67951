// What a listener that prints its events shows.
package dev.comeback

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals

class EventTextTest {
    private val millis = 1_000_000L

    @Test
    fun `each event is a line for a log`() {
        assertEquals("call 1: 503", RetryEvent.AttemptFailed(1, null, OutcomeClass.TRANSIENT_STATUS, 503, null, counted = true).toString())
        assertEquals(
            "call 2 (orders): connect_refused (not counted)",
            RetryEvent.AttemptFailed(2, "orders", OutcomeClass.NEVER_SENT, null, FailureKind.CONNECT_REFUSED, counted = false).toString(),
        )
        assertEquals(
            "call 1: waits 607 ms (backoff)",
            RetryEvent.WaitPlanned(1, null, 607 * millis + 999, 1_000 * millis, 0, WaitReason.BACKOFF).toString(),
        )
        assertEquals(
            "call 1: goes again after 20 ms (edge)",
            RetryEvent.Resumed(1, null, 607 * millis, 20 * millis, WokenBy.EDGE).toString(),
        )
        assertEquals("call 1: begun anew on another network", RetryEvent.AttemptAbandoned(1, null).toString())
        assertEquals("call 1: done after 754 ms, 2 counted", RetryEvent.Finished(1, null, null, 2, 754 * millis, true).toString())
        assertEquals(
            "call 1: not tried again (not_repeatable) after 30 ms, 1 counted",
            RetryEvent.Finished(1, null, StopReason.NotRepeatable, 1, 30 * millis, true).toString(),
        )
        assertEquals(
            "Comeback does not act: libcomeback.so on riscv64 cannot be used: java.lang.UnsatisfiedLinkError: no",
            RetryEvent.Unavailable("libcomeback.so", "riscv64", UnsatisfiedLinkError("no")).toString(),
        )
    }
}
