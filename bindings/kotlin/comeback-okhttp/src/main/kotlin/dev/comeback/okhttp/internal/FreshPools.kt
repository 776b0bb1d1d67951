// Gives attempts a fresh connection pool once the path to the network has changed under the old one.
package dev.comeback.okhttp.internal

import dev.comeback.driver.orNull
import okhttp3.Call
import okhttp3.ConnectionPool
import okhttp3.internal.connection.RealCall
import java.util.WeakHashMap
import java.util.concurrent.CopyOnWriteArrayList

/**
 * Connections made on a path that is gone look alive until they time out. So when [dev.comeback.NetworkSnapshot.path] has grown, attempts get a
 * new pool instead of the client's; the pool before is emptied of idle connections at once, and of the others as their calls end.
 *
 * @param firstPath the path when the client's own pool was adopted
 */
internal class FreshPools(
    private val firstPath: Long,
) {
    private class Adopted(
        val pool: ConnectionPool,
        val path: Long,
    )

    /** By the client's own pool: clients that share this interceptor may have different ones. */
    private val inUse = WeakHashMap<ConnectionPool, Adopted>()
    private val retired = CopyOnWriteArrayList<ConnectionPool>()

    /** The pool for an attempt on [path]; null means [own], the client's. */
    fun poolFor(
        own: ConnectionPool,
        path: Long,
    ): ConnectionPool? {
        if (path == firstPath) return null
        val outdated: ConnectionPool
        val fresh: ConnectionPool
        synchronized(inUse) {
            val adopted = inUse[own]
            if (adopted != null && path <= adopted.path) return adopted.pool
            if (adopted == null && path < firstPath) return null
            outdated = adopted?.pool ?: own
            fresh = ConnectionPool()
            inUse[own] = Adopted(fresh, path)
        }
        retired.add(outdated)
        sweep()
        return fresh
    }

    /** Closes what has become idle in the old pools. What a socket throws when it is closed concerns nobody, and least of all the call that swept. */
    fun sweep() {
        for (pool in retired) {
            orNull { pool.evictAll() }
            if (pool.connectionCount() == 0) retired.remove(pool)
        }
    }

    companion object {
        /** A call keeps its connection from one attempt to the next, past any pool. After this it lets go of it. */
        fun abandonConnectionOf(call: Call) {
            (call as? RealCall)?.connection?.noNewExchanges()
        }
    }
}
