// Gives attempts through OkHttp a fresh connection pool once the path to the network has changed under the old one.
package dev.comeback.ktor

import dev.comeback.orNull
import okhttp3.ConnectionPool
import okhttp3.Interceptor
import java.util.WeakHashMap

/**
 * As its namesake in comeback-okhttp, on which Ktor's users do not depend: connections made on a path that is gone look alive until they time out. Here
 * the engine tells of no call's end, so a connection that is in use when its pool is left stays until OkHttp finds it idle for too long.
 *
 * @param firstPath the path when the engine's own pool was adopted
 */
internal class FreshPools(
    private val firstPath: Long,
) {
    private class Adopted(
        val pool: ConnectionPool,
        val path: Long,
    )

    /** By the engine's own pool: its clients may have different ones. */
    private val inUse = WeakHashMap<ConnectionPool, Adopted>()

    /** [chain] for an attempt on [path]; itself where OkHttp is older than 5.4, and its chains cannot change pools. */
    fun on(
        path: Long,
        chain: Interceptor.Chain,
    ): Interceptor.Chain =
        try {
            poolFor(chain.connectionPool, path)?.let(chain::withConnectionPool) ?: chain
        } catch (_: LinkageError) {
            chain
        }

    /** Null means [own]. */
    private fun poolFor(
        own: ConnectionPool,
        path: Long,
    ): ConnectionPool? {
        if (path <= firstPath) return null
        val outdated: ConnectionPool
        val fresh: ConnectionPool
        synchronized(inUse) {
            val adopted = inUse[own]
            if (adopted != null && path <= adopted.path) return adopted.pool
            outdated = adopted?.pool ?: own
            fresh = ConnectionPool()
            inUse[own] = Adopted(fresh, path)
        }
        // What a socket throws when it is closed concerns nobody.
        orNull { outdated.evictAll() }
        return fresh
    }
}
