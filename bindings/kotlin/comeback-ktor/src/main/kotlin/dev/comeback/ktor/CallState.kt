// What Comeback keeps for one call of a Ktor client, in the request's attributes: redirects go on with it.
package dev.comeback.ktor

import dev.comeback.CallSession
import dev.comeback.DriverFacts
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.util.AttributeKey
import kotlinx.coroutines.Job

internal class CallState(
    /** Tells this call from one whose request was made from this one's. */
    val executionContext: Job,
    val session: CallSession,
    val facts: DriverFacts,
    val body: BodyWatch,
    /** The idempotency key, the caller's or one made. */
    val key: String?,
    /** The request's own timeouts, before an attempt's limits changed them. */
    val timeouts: HttpTimeoutConfig?,
) {
    /** Attempts begun so far. */
    var attempts: Int = 0

    /** When the attempt in flight began, in [CallSession.now]. */
    var attemptBegan: Long = 0

    /** A redirect was handed out; the attempt goes on if it is followed. */
    var isRedirected: Boolean = false

    /** The caller has its answer, or its exception. */
    @Volatile
    var isOver: Boolean = false

    companion object {
        val KEY = AttributeKey<CallState>("ComebackCallState")
    }
}
