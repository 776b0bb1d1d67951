// Tells Ktor's Apache5 engine not to send requests again by itself: else a GET goes twice for each attempt, after a 503 and after a fault.
package dev.comeback.ktor

import dev.comeback.orNull

/** By reflection, for one call on an engine that few apps have. Requests with a body it never sends again: Ktor's are not repeatable to it. */
internal object Apache5 {
    private const val CONFIG = "io.ktor.client.engine.apache5.Apache5EngineConfig"

    fun tellNotToResend(config: Any) {
        if (config.javaClass.name != CONFIG) return
        val customize: (Any) -> Unit = { builder -> orNull { builder.javaClass.getMethod("disableAutomaticRetries").invoke(builder) } }
        orNull { config.javaClass.getMethod("customizeClient", Function1::class.java).invoke(config, customize) }
    }
}
