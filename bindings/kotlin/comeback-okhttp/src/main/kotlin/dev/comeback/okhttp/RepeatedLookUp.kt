// Asks for a name again on Android, where the system's resolver would repeat a failure from memory.
package dev.comeback.okhttp

import dev.comeback.NameLookUp
import dev.comeback.orNull
import okhttp3.Dns
import java.net.InetAddress

/**
 * For the attempts of a call after the one that did not find a name; the first attempt is the client's own. What is not found here, a name of a hosts
 * file for instance, the system is asked for all the same. Two with the same [names] are equal: connections are pooled and shared by resolver.
 */
internal data class RepeatedLookUp(
    private val names: NameLookUp,
) : Dns {
    /** Whether the memory of a failure on [network] does not come between. */
    fun asksPastFailureOn(network: Any?): Boolean = !names.remembersFailureOn(network)

    override fun lookup(hostname: String): List<InetAddress> = orNull { names.lookUpAgain(hostname) } ?: Dns.SYSTEM.lookup(hostname)

    companion object {
        /** Null where the app chose a resolver of its own, or the platform knows no better than the client: [names] is null. */
        fun insteadOf(
            dns: Dns,
            names: NameLookUp?,
        ): RepeatedLookUp? = if (dns === Dns.SYSTEM) names?.let(::RepeatedLookUp) else null
    }
}
