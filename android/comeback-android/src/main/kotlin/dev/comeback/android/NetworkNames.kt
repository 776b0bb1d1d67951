// Looks up names on the default network by its name, where the system's memory of failures is another.
package dev.comeback.android

import android.net.ConnectivityManager
import android.net.Network
import android.os.Looper
import dev.comeback.InternalComebackApi
import dev.comeback.driver.NameLookUp
import java.net.InetAddress
import java.net.UnknownHostException

/** How to ask for a host's addresses on a network; it may throw whatever it likes. */
internal fun interface Resolver {
    fun lookUp(
        network: Network,
        host: String,
    ): List<InetAddress>
}

/**
 * The system remembers a failed look-up for 2 s, by host and network, or by host alone if no network was named.
 *
 * @param isOffline whether it is known that there is no network, which is more than that [defaultNetwork] knows of none
 * @param defaultNetwork null if none is known
 */
@OptIn(InternalComebackApi::class)
internal class NetworkNames(
    private val resolver: Resolver = Resolver { network, host -> network.getAllByName(host).asList() },
    private val boundNetwork: () -> Network? = ::processNetwork,
    private val isOffline: () -> Boolean = { false },
    private val defaultNetwork: () -> Network?,
) : NameLookUp {
    /** The default network, or [NoNetwork]; null for an app that has tied its process to another one, because it means that one. */
    override val network: Any?
        get() {
            val now = defaultNetwork() ?: return if (isOffline()) NoNetwork else null
            val bound = orNull(boundNetwork)
            return now.takeIf { bound == null || bound == now }
        }

    override fun lookUp(
        network: Any,
        host: String,
    ): List<InetAddress>? {
        // The main thread must not wait for answers.
        if (network !is Network || Looper.myLooper() === Looper.getMainLooper()) return null
        return try {
            resolver.lookUp(network, host).takeIf { it.isNotEmpty() }
        } catch (notFound: UnknownHostException) {
            throw notFound
        } catch (_: Throwable) {
            null
        }
    }

    /** There is known to be no network: nobody is asked, and nothing is remembered for it. */
    private object NoNetwork
}

/** Known in this process: no call to another. */
@Suppress("DEPRECATION")
private fun processNetwork(): Network? = ConnectivityManager.getProcessDefaultNetwork()
