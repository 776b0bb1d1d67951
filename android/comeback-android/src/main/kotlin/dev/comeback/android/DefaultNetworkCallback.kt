// Android's callbacks for the default network, as the hub's events.
package dev.comeback.android

import android.net.ConnectivityManager
import android.net.Network
import android.net.NetworkCapabilities
import android.os.Build
import android.os.Handler
import android.os.Looper
import dev.comeback.ManualConnectivity

/** Reads the facts from each callback; the hub decides what they mean. A captive portal is a network that is not validated; a VPN is a network. */
internal class DefaultNetworkCallback(
    private val handler: Handler,
    hub: ManualConnectivity,
) : ConnectivityManager.NetworkCallback() {
    private val arrivals = Arrivals(hub, handler, promisesCapabilities = Build.VERSION.SDK_INT >= Build.VERSION_CODES.O)
    private var stopped = false

    /** The default network as the last callback gave it; to look names up on. */
    @Volatile
    var network: Network? = null
        private set

    override fun onAvailable(network: Network) {
        this.network = network
        val handle = network.networkHandle
        tell { arrivals.available(handle) }
    }

    override fun onCapabilitiesChanged(
        network: Network,
        networkCapabilities: NetworkCapabilities,
    ) {
        val handle = network.networkHandle
        // Before API 28 no network has the capability, and none is known to be suspended.
        val suspended =
            Build.VERSION.SDK_INT >= Build.VERSION_CODES.P &&
                !networkCapabilities.hasCapability(NetworkCapabilities.NET_CAPABILITY_NOT_SUSPENDED)
        val validated = networkCapabilities.hasCapability(NetworkCapabilities.NET_CAPABILITY_VALIDATED)
        tell { arrivals.capabilities(handle, suspended, validated) }
    }

    /** From API 29. */
    override fun onBlockedStatusChanged(
        network: Network,
        blocked: Boolean,
    ) {
        val handle = network.networkHandle
        tell { arrivals.blocked(handle, blocked) }
    }

    override fun onLost(network: Network) {
        if (network == this.network) this.network = null
        val handle = network.networkHandle
        tell { arrivals.lost(handle) }
    }

    /** What comes now is late; on the monitor's thread. */
    fun stop() {
        stopped = true
        arrivals.stop()
    }

    /** Before API 26 callbacks come on a thread of the system's. */
    private fun tell(event: () -> Unit) {
        if (Looper.myLooper() === handler.looper) {
            if (!stopped) orNull(event)
        } else {
            handler.post { if (!stopped) orNull(event) }
        }
    }
}
