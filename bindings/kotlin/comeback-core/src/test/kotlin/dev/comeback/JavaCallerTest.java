// What a Java caller writes: if this compiles and runs, no Kotlin is needed.
package dev.comeback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class JavaCallerTest {
    @Test
    @DisplayName("a Comeback is built, asked and closed")
    void comeback() {
        List<RetryEvent> heard = new ArrayList<>();
        Comeback.Builder builder = Comeback.builder();
        ManualConnectivity network = new ManualConnectivity();
        builder.setConnectivity(network);
        builder.setListener(heard::add);
        try (Comeback comeback = builder.build()) {
            comeback.selfCheck();
            network.available();
            network.lost(1);
            assertEquals(NetworkState.OFFLINE, comeback.getConnectivity().getSnapshot().getState());
        }
        network.close();
    }

    @Test
    @DisplayName("a policy is built over a preset, with durations in milliseconds")
    void policy() {
        RetryPolicy.Builder builder = RetryPolicy.builder(RetryPolicy.READ);
        builder.setMaxAttempts(6);
        builder.setMaxElapsedMillis(30_000L);
        builder.setAttemptTimeoutMillis(5_000L);
        builder.setOfflineProbeMillis(null);
        builder.setJitter(Jitter.EQUAL);
        builder.setRetryStatuses(Collections.singleton(503));
        builder.overloadMillis(2_000, 2.0, 8_000);
        assertTrue(builder.build().toString().contains("6 attempts"));
        builder.setMaxAttempts(0);
        PolicyException refused = assertThrows(PolicyException.class, builder::build);
        assertEquals("max_attempts", refused.getField());
    }

    @Test
    @DisplayName("a policy comes from JSON")
    void json() {
        ForgivenPolicy forgiven = RetryPolicy.fromJsonOr("{\"max_attempts\": 2, \"new\": 1}", RetryPolicy.PAYMENT);
        assertNull(forgiven.getProblem());
        assertEquals(Collections.singletonList("new"), forgiven.getIgnored());
    }

    @Test
    @DisplayName("a report is asked of an exception")
    void report() {
        assertNull(RetryReports.of(new IOException()));
        assertEquals("attempts", StopReason.Attempts.INSTANCE.toString());
    }
}
