// What Comeback must know about a client's engine, and what it tells the engine: limits, and what it must not re-send by itself.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.DriverFacts
import dev.comeback.FailedLookUps
import dev.comeback.OuterAttempt
import io.ktor.client.HttpClient
import io.ktor.client.plugins.HttpTimeoutCapability
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.client.request.HttpRequestBuilder
import kotlinx.coroutines.CompletableJob

/** @throws IllegalStateException if this engine sends requests again by itself and cannot be told not to */
internal class Engine(
    private val client: HttpClient,
    comeback: Comeback,
) {
    /** A layer of ours is in the engine: it takes the header that tells it of a request, and tells of that request's way. */
    private val takesLayers: Boolean = withOptional { OkHttpEngines.adopt(client, comeback) } ?: false

    init {
        if (takesLayers) someTakesLayers = true else Apache5.tellNotToResend(client.engine.config)
    }

    /** [request] enters the engine. [job]: what ends it; null if it is not ours to end. */
    fun entered(
        request: HttpRequestBuilder,
        outer: OuterAttempt,
        facts: DriverFacts,
        body: BodyWatch?,
        job: CompletableJob?,
    ): EngineRequest {
        if (takesLayers) {
            val mayResend = !outer.clientResendsOff && !facts.clientResendsOff && facts.mayRepeat(request.head(facts.keyHeader))
            val entered = EngineRequest(request, outer, isHeard = true, mayResend, body)
            request.headers[OuterAttempt.header] = entered.numbered()
            return entered
        }
        if (job != null && outer.connectNanos != null &&
            HttpTimeoutCapability in client.engine.supportedCapabilities
        ) {
            limit(request, outer, job)
        }
        return EngineRequest(request, outer, isHeard = false, mayResend = true, body)
    }

    private fun limit(
        request: HttpRequestBuilder,
        outer: OuterAttempt,
        job: CompletableJob,
    ) {
        val asked = request.getCapabilityOrNull(HttpTimeoutCapability)
        val own = withOptional { CioTimeouts.of(client) }
        if (asked == null) own?.keepRequestTimeout(request, client, job)
        val connect = asked?.connectTimeoutMillis ?: own?.connectMillis
        val socket = asked?.socketTimeoutMillis ?: own?.socketMillis
        val limited =
            HttpTimeoutConfig(
                requestTimeoutMillis = asked?.requestTimeoutMillis,
                connectTimeoutMillis = shorter(connect, outer.connectNanos?.let(::millis)),
                socketTimeoutMillis = shorter(socket, outer.inactivityNanos?.let(::millis)),
            )
        request.setCapability(HttpTimeoutCapability, limited)
    }

    /** How long the platform remembers a failed look-up; a resolver of the engine's own is assumed to ask each time. */
    fun failedLookUpNanos(): Long = if (withOptional { OkHttpEngines.hasOwnDns(client) } == true) 0 else FailedLookUps.cachedNanos()

    /** Null where that engine is not on the class path. */
    private inline fun <T> withOptional(action: () -> T): T? =
        try {
            action()
        } catch (_: LinkageError) {
            null
        }

    companion object {
        /** Whether that header is anywhere in this process: a request may be made from one that another client sent. */
        @Volatile
        var someTakesLayers: Boolean = false
            private set
    }
}

private fun millis(nanos: Long): Long = roundedUpToMillis(nanos).coerceAtLeast(1)

/** Null is no limit. */
internal fun shorter(
    one: Long?,
    other: Long?,
): Long? = if (one == null || other == null) one ?: other else minOf(one, other)
