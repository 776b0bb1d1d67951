// What Comeback must know about a client's engine, and what it tells the engine: limits, and what it must not re-send by itself.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.roundedUpToMillis
import dev.comeback.driver.shorter
import io.ktor.client.HttpClient
import io.ktor.client.plugins.HttpTimeoutCapability
import io.ktor.client.plugins.HttpTimeoutConfig
import io.ktor.client.request.HttpRequestBuilder
import kotlinx.coroutines.CompletableJob

/** @throws IllegalStateException if this engine sends requests again by itself and cannot be told not to */
internal class Engine(
    private val client: HttpClient,
    private val comeback: Comeback,
    private val onlyThisClientSends: Boolean,
) {
    /** A layer of ours is in the engine: it takes the header that tells it of a request, and tells of that request's way. */
    private val takesLayers: Boolean = withOptional { OkHttpEngines.adopt(client) } ?: false

    init {
        if (takesLayers) someTakesLayers = true else Apache5.tellNotToResend(client.engine.config)
    }

    /** A CIO engine that shares connections; by itself it makes one for each request. */
    private val isPipelining = withOptional { CioTimeouts.arePipelined(client) } ?: false

    /**
     * [request] enters the engine, on [path]; null: the newest. [job]: what ends it; null if it is not ours to end. [before], [asksAgain]: see [EngineRequest].
     */
    fun entered(
        request: HttpRequestBuilder,
        outer: OuterAttempt,
        facts: DriverFacts,
        path: Long?,
        body: BodyWatch?,
        job: CompletableJob?,
        before: EngineRequest?,
        asksAgain: Boolean = false,
    ): EngineRequest {
        val mayResend =
            !takesLayers || (!outer.clientResendsOff && !facts.clientResendsOff && facts.mayRepeat(request.head(facts.keyHeader)))
        val onPath = path ?: comeback.networkFor(facts, request.url.host).snapshot.path
        val entered =
            EngineRequest(
                request,
                outer,
                isHeard = takesLayers,
                mayResend,
                onlyThisClientSends,
                comeback.connectionAges,
                comeback.lookUpMemory,
                asksAgain,
                onPath,
                body,
                before,
            )
        if (takesLayers) {
            request.headers[OuterAttempt.header] = entered.numbered()
        } else {
            if (isPipelining) entered.connections = connections(request, onPath)
            val needsOwnConnection = entered.connections?.age != null
            if ((needsOwnConnection || (job != null && outer.connectNanos != null)) && takesTimeouts) limit(request, outer, job)
        }
        return entered
    }

    private fun connections(
        request: HttpRequestBuilder,
        path: Long,
    ): Connections {
        val url = request.url.build()
        return Connections(comeback.connectionAges, path, url.protocol.name, url.host, url.port)
    }

    private val takesTimeouts = HttpTimeoutCapability in client.engine.supportedCapabilities

    private fun limit(
        request: HttpRequestBuilder,
        outer: OuterAttempt,
        job: CompletableJob?,
    ) {
        val asked = request.getCapabilityOrNull(HttpTimeoutCapability)
        val own = withOptional { CioTimeouts.of(client) }
        if (asked == null) own?.keepRequestTimeout(request, client, job ?: request.executionContext as CompletableJob)
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
