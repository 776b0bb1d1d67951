// Which connections an attempt may begin on: none from before the path changed, and none from before an attempt on them ended by time.
package dev.comeback.driver

import dev.comeback.Comeback
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import java.util.WeakHashMap
import java.util.concurrent.ConcurrentHashMap

/**
 * Connections of one age may be shared. Those of an older age look alive, but may be dead.
 *
 * @property path the network's path on which the connection was made, [NetworkSnapshot.path]
 * @property generation grows when an attempt ends by time; no two origins share one above 0
 * @suppress
 */
@InternalComebackApi
public class ConnectionAge internal constructor(
    private val ages: ConnectionAges,
    public val path: Long,
    public val generation: Long,
) {
    override fun equals(other: Any?): Boolean =
        other is ConnectionAge && ages === other.ages && path == other.path && generation == other.generation

    override fun hashCode(): Int = 31 * path.hashCode() + generation.hashCode()
}

/**
 * The ages of connections, shared by all clients of a [Comeback]. An attempt notes its age when it begins ([of]), begins on connections of that age
 * only, and says so if time ended it ([suspect]). What is under way on an older connection goes on.
 *
 * May be used from any thread.
 *
 * @param firstPath the path when the first client was made
 * @suppress
 */
@InternalComebackApi
public class ConnectionAges internal constructor(
    private val firstPath: Long,
) {
    private data class Origin(
        val scheme: String,
        val host: String,
        val port: Int,
    )

    /** The generations of origins that have grown. */
    private val grown = ConcurrentHashMap<Origin, Long>()

    /** That of all other origins. */
    @Volatile
    private var common = FIRST

    /** The newest of all. */
    @Volatile
    private var newest = FIRST

    /** Path by pool of connections. */
    private val pools = WeakHashMap<Any, Long>()

    /** Whether nothing happened so far: any connection will do for an attempt on [path], as without us. */
    public fun areAllFirst(path: Long): Boolean = path == firstPath && newest == FIRST

    /** The age of connections for an attempt that begins now on [path]; null: any connection will do, as without us. */
    public fun of(
        path: Long,
        scheme: String,
        host: String,
        port: Int,
    ): ConnectionAge? {
        if (areAllFirst(path)) return null
        val generation = generationOf(Origin(scheme, host, port))
        return if (path == firstPath && generation == FIRST) null else ConnectionAge(this, path, generation)
    }

    private fun generationOf(origin: Origin) = grown[origin] ?: common

    /**
     * Time ended an attempt that [began] with this age, so the origin's connections of that age are suspect. The first of all attempts that began in
     * one generation says it for all of them.
     */
    public fun suspect(
        began: ConnectionAge?,
        scheme: String,
        host: String,
        port: Int,
    ) {
        val origin = Origin(scheme, host, port)
        synchronized(this) {
            if (generationOf(origin) != (began?.generation ?: FIRST)) return
            val next = newest + 1
            newest = next
            if (grown.size < MOST_ORIGINS || grown.containsKey(origin)) {
                grown[origin] = next
            } else {
                // Too many to tell apart: all begin a new generation together.
                common = next
                grown.clear()
            }
        }
    }

    /** Whether [pool] may hold connections from before [path] began; true once per pool and path. Pools are told apart by identity or their own equality. */
    public fun isNewTo(
        pool: Any,
        path: Long,
    ): Boolean {
        if (path == firstPath) return false
        synchronized(pools) {
            val before = pools[pool] ?: firstPath
            if (path <= before) return false
            pools[pool] = path
            return true
        }
    }

    internal companion object {
        const val FIRST = 0L
        const val MOST_ORIGINS = 256
    }
}
