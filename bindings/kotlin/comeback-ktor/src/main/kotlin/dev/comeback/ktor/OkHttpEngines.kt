// Ktor's OkHttp engines: which of them have our layer inside, and which can have it.
package dev.comeback.ktor

import dev.comeback.driver.orNull
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngine
import io.ktor.client.engine.okhttp.OkHttpConfig
import kotlinx.coroutines.job
import okhttp3.Interceptor
import java.lang.reflect.Proxy
import java.util.Collections
import java.util.WeakHashMap

/**
 * Prepares an OkHttp engine for [ktorPlugin], for clients that get it later: those that share the engine, and those that are made by
 * `client.config { install(comeback.ktorPlugin) }`. `HttpClient(OkHttp) { install(comeback.ktorPlugin) }` needs no word.
 *
 * ```
 * val plain = HttpClient(OkHttp) { engine { comeback() } }
 * val retrying = plain.config { install(comeback.ktorPlugin) }
 * ```
 *
 * Requests without the plugin go as ever. Call it last in the engine's configuration: interceptors that are added later may see a `Retry-After` of
 * `+0` where the server said 0.
 *
 * @throws IllegalStateException if OkHttp is older than 5.4
 */
public fun OkHttpConfig.comeback(): Unit = OkHttpEngines.prepare(this)

/** Touched only where the engine is on the class path. */
internal object OkHttpEngines {
    private val prepared: MutableSet<OkHttpConfig> = Collections.newSetFromMap(Collections.synchronizedMap(WeakHashMap()))

    /**
     * Whether our layer is in the engine of [client] from here on. False: it is another engine.
     *
     * @throws IllegalStateException if it cannot be, because the engine has built OkHttp clients already
     */
    fun adopt(client: HttpClient): Boolean {
        val config = client.engine.config as? OkHttpConfig ?: return false
        if (config in prepared) return true
        check(isUnused(client.engine)) {
            "Comeback: this OkHttp engine may be in use already, by another HttpClient or the one that `config { }` was called on, " +
                "so that OkHttp cannot be told what it must not send again. Install the plugin in `HttpClient(OkHttp) { }` itself, or " +
                "prepare the engine where it is made: `HttpClient(OkHttp) { engine { comeback() } }`, `OkHttp.create { comeback() }`"
        }
        prepare(config)
        return true
    }

    fun prepare(config: OkHttpConfig) {
        check(canBeTold()) {
            "Comeback needs OkHttp 5.4 or newer, which can be told what it must not send again. Ktor's OkHttp engine brings " +
                "it from Ktor 3.6 on; with an older Ktor add a dependency on com.squareup.okhttp3:okhttp 5.4 or newer"
        }
        if (!prepared.add(config)) return
        // It overrules what `config { }` sets.
        orNull { config.dns?.let { config.dns = EngineDns.of(it) } }
        config.config {
            // The one way to learn what was set. Where the builder is not complete enough for it, it is wrapped for each attempt.
            orNull { build() }?.let { soFar -> dns(EngineDns.of(soFar.dns)) }
            // Before all of the app's own: what they sign or log is the request as it would be without us.
            interceptors().add(0, EngineEntrance)
            addInterceptor(HeadsAsSent)
            networkInterceptors().add(0, EngineExit)
        }
    }

    /** No other client has it, and none had it. */
    private fun isUnused(engine: HttpClientEngine): Boolean {
        val clients =
            engine.coroutineContext.job.children
                .count()
        return clients <= 1 && clientsBuilt(engine) == 0
    }

    /** How many OkHttp clients the engine has built so far; nothing else tells of an [HttpClient] that had it and was closed. */
    private fun clientsBuilt(engine: HttpClientEngine): Int =
        orNull {
            engine.javaClass.declaredFields
                .filter { Map::class.java.isAssignableFrom(it.type) }
                .sumOf { field -> (field.apply { isAccessible = true }.get(engine) as Map<*, *>).size }
        } ?: 0

    /** Asks a chain that does nothing, since a shrinker may have renamed what could be looked for by its name. */
    private fun canBeTold(): Boolean =
        try {
            val chain = Proxy.newProxyInstance(javaClass.classLoader, arrayOf(Interceptor.Chain::class.java)) { proxy, _, _ -> proxy }
            (chain as Interceptor.Chain).withRetryOnConnectionFailure(false)
            true
        } catch (_: LinkageError) {
            false
        }
}
