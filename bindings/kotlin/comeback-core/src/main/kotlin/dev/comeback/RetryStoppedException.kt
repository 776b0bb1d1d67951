// Stands in for a last response that was already closed when the call stopped.
package dev.comeback

import java.io.IOException

/**
 * The call stopped during a wait. Its last response cannot be returned, because it was closed before the wait. A serialised exception keeps only status
 * and headers.
 *
 * @property reason why the call stopped
 * @property status of the last response
 * @property headers of the last response, names and values in order
 * @property report what was tried
 */
public class RetryStoppedException
    internal constructor(
        @Transient public val reason: StopReason,
        public val status: Int,
        public val headers: List<Pair<String, String>>,
        @Transient public val report: RetryReport,
    ) : IOException("no further attempt ($reason) after HTTP status $status") {
        /** @suppress */
        @InternalComebackApi
        public companion object {
            /** For adapters. */
            public fun of(
                reason: StopReason,
                status: Int,
                headers: List<Pair<String, String>>,
                report: RetryReport,
            ): RetryStoppedException = RetryStoppedException(reason, status, headers, report)
        }
    }
