// Asks for a name again on Android, where the system's resolver would repeat a failure from memory.
package dev.comeback.okhttp

import dev.comeback.Comeback
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
    /** Whether no memory of a failure comes between. */
    val asksAnew: Boolean get() = !names.remembersFailures

    override fun lookup(hostname: String): List<InetAddress> = orNull { names.lookUpAgain(hostname) } ?: Dns.SYSTEM.lookup(hostname)

    companion object {
        /** Null where the app chose a resolver of its own, or the platform knows no better than the client. */
        fun insteadOf(
            dns: Dns,
            comeback: Comeback,
        ): RepeatedLookUp? = if (dns === Dns.SYSTEM) (comeback.connectivity as? NameLookUp)?.let(::RepeatedLookUp) else null
    }
}
