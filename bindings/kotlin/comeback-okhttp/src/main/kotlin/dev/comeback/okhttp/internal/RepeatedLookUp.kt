// Looks up a name again on Android, where the system's resolver would only repeat a remembered failure.
package dev.comeback.okhttp.internal

import dev.comeback.driver.NameLookUp
import dev.comeback.driver.orNull
import okhttp3.Dns
import java.net.InetAddress

/**
 * For the attempts of a call after one that did not find a name; the first attempt uses the client's own resolver. If a name is not found here, for instance
 * one from a hosts file, the system is asked. Two objects with the same [names] are equal, because OkHttp pools and shares connections by resolver.
 */
internal data class RepeatedLookUp(
    private val names: NameLookUp,
) : Dns {
    /** Whether the memory of a failure on [network] does not come between. */
    fun asksPastFailureOn(network: Any?): Boolean = !names.remembersFailureOn(network)

    override fun lookup(hostname: String): List<InetAddress> = orNull { names.lookUpAgain(hostname) } ?: Dns.SYSTEM.lookup(hostname)

    companion object {
        /** Null if the app chose a resolver of its own, or if the platform has no better one ([names] is null). */
        fun insteadOf(
            dns: Dns,
            names: NameLookUp?,
        ): RepeatedLookUp? = if (dns === Dns.SYSTEM) names?.let(::RepeatedLookUp) else null
    }
}
