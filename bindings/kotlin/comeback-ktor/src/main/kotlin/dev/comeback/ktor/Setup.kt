// What all calls of one client share.
package dev.comeback.ktor

import dev.comeback.Comeback
import io.ktor.client.HttpClient
import io.ktor.client.plugins.HttpTimeout
import io.ktor.client.plugins.pluginOrNull
import kotlinx.coroutines.Delay
import kotlinx.coroutines.InternalCoroutinesApi
import java.util.concurrent.atomic.AtomicInteger
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext

internal class Setup(
    val client: HttpClient,
    val comeback: Comeback,
    val hooks: Hooks,
) {
    val engine: Engine = Engine(client, comeback, hooks.onlyThisClientSends)

    private val foreignCode = ForeignCode(client)

    /** Whether code of the app's further in may send requests through a client that nobody here hears. For failures: what is there is looked for anew. */
    val mayBeSentElsewhere: Boolean get() = !hooks.onlyThisClientSends && foreignCode.isThere()

    /** The same as far as it is known, for every request. */
    val isKnownToBeSentElsewhere: Boolean get() = !hooks.onlyThisClientSends && foreignCode.wasThere

    /**
     * By these an attempt's limit goes, where the engine's dispatcher has timers of its own: the virtual time of a test, for instance. Null: it goes by real
     * time.
     */
    @OptIn(InternalCoroutinesApi::class)
    val enginesTimers: CoroutineContext? by lazy(LazyThreadSafetyMode.PUBLICATION) {
        client.coroutineContext.takeIf { it[ContinuationInterceptor] is Delay }
    }

    /** Attempts that were ended, and go on alone because nothing in them can be. */
    val alone: AtomicInteger = AtomicInteger()

    /** Installed before Comeback, it is outside: its request timeout is the whole call's. */
    val isTimeoutOutside: Boolean = client.pluginOrNull(HttpTimeout) != null
}
