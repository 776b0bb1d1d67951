// Looks up a name again after it was not found. The system itself would only repeat what it remembers.
package dev.comeback.android

import android.annotation.TargetApi
import android.net.ConnectivityManager
import android.net.DnsResolver
import android.net.Network
import android.os.Build
import android.os.CancellationSignal
import android.os.Looper
import dev.comeback.InternalComebackApi
import dev.comeback.driver.NameLookUp
import java.net.InetAddress
import java.util.concurrent.CompletableFuture
import java.util.concurrent.TimeUnit.MILLISECONDS

/** One way to ask for a host's addresses on a network; it may throw whatever it likes. */
internal fun interface Resolver {
    fun lookUp(
        network: Network,
        host: String,
    ): List<InetAddress>
}

/**
 * The system remembers a failed look-up for 2 s, by host and network, or by host alone if no network was named. So a look-up on the default network, by its
 * name, uses a different memory. From API 29 on a look-up can bypass the memory.
 *
 * @param isOffline whether it is known that there is no network, which is more than that [defaultNetwork] knows of none
 * @param defaultNetwork null if none is known
 */
@OptIn(InternalComebackApi::class)
internal class NetworkNames(
    private val pastMemory: Resolver? = if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.Q) UncachedResolver else null,
    private val withMemory: Resolver = Resolver { network, host -> network.getAllByName(host).asList() },
    private val boundNetwork: () -> Network? = ::processNetwork,
    private val isOffline: () -> Boolean = { false },
    private val defaultNetwork: () -> Network?,
) : NameLookUp {
    /** The default network, or [NoNetwork]. */
    override val network: Any? get() = defaultNetwork() ?: if (isOffline()) NoNetwork else null

    override fun remembersFailureOn(network: Any?): Boolean {
        // Without a network nobody is asked. The next one's handle is new, and nothing is remembered by it.
        val now = defaultNetwork() ?: return !isOffline()
        if (isBoundElsewhere(now)) return true
        return pastMemory == null && (network == null || network == now)
    }

    override fun lookUpAgain(host: String): List<InetAddress>? {
        // It would wait for answers.
        if (Looper.myLooper() === Looper.getMainLooper()) return null
        val network = defaultNetwork() ?: return null
        if (isBoundElsewhere(network)) return null
        return orNull { (pastMemory ?: withMemory).lookUp(network, host) }?.takeIf { it.isNotEmpty() }
    }

    /** An app that has tied its process to one network means that one. */
    private fun isBoundElsewhere(network: Network): Boolean {
        val bound = orNull(boundNetwork)
        return bound != null && bound != network
    }

    /** There is known to be no network, so no failure is remembered for it. */
    private object NoNetwork
}

/** Known in this process: no call to another. */
@Suppress("DEPRECATION")
private fun processNetwork(): Network? = ConnectivityManager.getProcessDefaultNetwork()

/** Asks the network's servers, whatever is remembered. It does not find names that no server knows (from a hosts file, from mDNS). */
@TargetApi(Build.VERSION_CODES.Q)
internal object UncachedResolver : Resolver {
    /** Servers that do not answer are given up by the system after a while; this is for when it does not. */
    private const val LONGEST_MILLIS = 5_000L

    override fun lookUp(
        network: Network,
        host: String,
    ): List<InetAddress> {
        val answer = CompletableFuture<List<InetAddress>>()
        val cancellation = CancellationSignal()
        DnsResolver.getInstance().query(
            network,
            host,
            DnsResolver.FLAG_NO_CACHE_LOOKUP,
            { it.run() },
            cancellation,
            object : DnsResolver.Callback<List<InetAddress>> {
                override fun onAnswer(
                    addresses: List<InetAddress>,
                    rcode: Int,
                ) {
                    answer.complete(addresses)
                }

                override fun onError(error: DnsResolver.DnsException) {
                    answer.completeExceptionally(error)
                }
            },
        )
        try {
            return answer.get(LONGEST_MILLIS, MILLISECONDS)
        } catch (interrupted: InterruptedException) {
            Thread.currentThread().interrupt()
            throw interrupted
        } finally {
            if (!answer.isDone) cancellation.cancel()
        }
    }
}
