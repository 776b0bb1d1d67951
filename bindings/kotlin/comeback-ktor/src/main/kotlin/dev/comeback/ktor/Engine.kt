// What must be known of a client's engine.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.FailedLookUps
import io.ktor.client.HttpClient

internal class Engine(
    private val client: HttpClient,
    comeback: Comeback,
) {
    /** Whether a header may say to layers inside the engine that Comeback has the call: only where it is taken away before it reaches a server. */
    val takesLayers: Boolean = withOkHttp { OkHttpLayer.prepare(client, comeback.snapshot.path) } ?: false

    init {
        if (takesLayers) someTakesLayers = true
    }

    /** How long a failed look-up stays cached below the engine; an own resolver is taken to ask each time. */
    fun failedLookUpNanos(): Long = if (withOkHttp { OkHttpLayer.hasOwnDns(client) } == true) 0 else FailedLookUps.cachedNanos()

    /** Null where OkHttp or its engine is not on the class path. */
    private inline fun <T> withOkHttp(action: () -> T): T? =
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
