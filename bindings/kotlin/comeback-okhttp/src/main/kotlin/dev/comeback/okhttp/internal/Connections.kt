// Keeps attempts off connections that may be dead: from before the path changed, or from before an attempt on them ended by time.
package dev.comeback.okhttp.internal

import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.ConnectionAges
import dev.comeback.driver.okhttp.onConnectionsOf
import okhttp3.HttpUrl
import okhttp3.Interceptor
import okhttp3.internal.connection.RealCall
import okhttp3.internal.connection.RealConnection

/**
 * All connections stay in the app's own pool, by the app's own rules. OkHttp gives an attempt a pooled connection only if both have an equal Dns, whatever
 * the host (coalescing). So an attempt on another path than the first, or in a later generation of its origin, gets an [AttemptDns] of its age.
 */
internal class Connections(
    private val ages: ConnectionAges,
) {
    /** The age of the connections that an attempt on [path] may begin on; null: any will do, as without us. */
    fun ageFor(
        url: HttpUrl,
        path: Long,
    ): ConnectionAge? = ages.of(path, url.scheme, url.host, url.port)

    /** [chain] for an attempt that begins on connections of [age] only. */
    fun limited(
        chain: Interceptor.Chain,
        age: ConnectionAge?,
    ): Interceptor.Chain {
        // A call keeps its connection from one attempt to the next, whatever its chain says.
        val own = (chain.call() as? RealCall)?.connection
        if (own != null && ageOf(own) != age) own.noNewExchanges()
        return chain.onConnectionsOf(AttemptDns.of(chain.dns, age), ages)
    }

    /**
     * Time ended an attempt that began with [age]: no later one begins on a connection as old.
     *
     * @param asked what the call asked for
     * @param last what went out last: after a redirect it may have another origin
     */
    fun areSuspect(
        age: ConnectionAge?,
        asked: HttpUrl,
        last: HttpUrl,
    ) {
        ages.suspect(age, asked.scheme, asked.host, asked.port)
        ages.suspect(age, last.scheme, last.host, last.port)
    }

    private fun ageOf(connection: RealConnection) = (connection.route().address.dns as? AttemptDns)?.age
}
