// Tells Ktor's Apache5 engine not to re-send requests by itself. Otherwise a GET would go twice in each attempt, after a 503 and after a fault.
package dev.comeback.ktor

import dev.comeback.driver.orNull

/** By reflection, because it is one call on an engine that few apps have. The engine never re-sends a body: to it Ktor's bodies are not repeatable. */
internal object Apache5 {
    private const val CONFIG = "io.ktor.client.engine.apache5.Apache5EngineConfig"

    fun tellNotToResend(config: Any) {
        if (config.javaClass.name != CONFIG) return
        val customize: (Any) -> Unit = { builder -> orNull { builder.javaClass.getMethod("disableAutomaticRetries").invoke(builder) } }
        orNull { config.javaClass.getMethod("customizeClient", Function1::class.java).invoke(config, customize) }
    }
}
