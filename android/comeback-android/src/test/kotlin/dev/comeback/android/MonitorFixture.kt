// What the monitor's tests use: the system service, its callbacks, the monitor's thread.
package dev.comeback.android

import android.content.Context
import android.net.ConnectivityManager
import android.net.ConnectivityManager.NetworkCallback
import android.net.Network
import android.net.NetworkCapabilities
import android.os.Build
import android.os.Handler
import android.os.HandlerThread
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.shadows.ShadowNetwork
import org.robolectric.shadows.ShadowNetworkCapabilities

internal object MonitorFixture {
    val context: Context get() = RuntimeEnvironment.getApplication()
    val service: ConnectivityManager get() = context.getSystemService(Context.CONNECTIVITY_SERVICE) as ConnectivityManager

    fun callbacks(): Set<NetworkCallback> = shadowOf(service).networkCallbacks

    fun threads(): List<HandlerThread> =
        Thread
            .getAllStackTraces()
            .keys
            .filterIsInstance<HandlerThread>()
            .filter { it.name == "comeback-network" && it.isAlive }

    /** The monitor has done all it was asked to. */
    fun settle() {
        for (thread in threads()) {
            // Null if the thread has ended meanwhile.
            thread.looper?.let { orNull { settle(it) } }
        }
    }

    /** After the last monitor was closed. */
    fun awaitNoThread() {
        for (thread in threads()) {
            thread.join(5_000)
            check(!thread.isAlive) { "the monitor's thread goes on" }
        }
    }

    fun network(number: Long): Network = ShadowNetwork.newInstance(number.toInt())

    /** Makes the callbacks as this API level does: from 26 on in one message to the monitor's thread, before on another thread; blocked from 29. */
    fun call(script: List<Script.Callback>) {
        val callback = callbacks().single()
        val calls = { script.forEach { call(callback, it) } }
        val looper = threads().single().looper
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.O) {
            Handler(looper).post(calls)
        } else {
            // What the monitor makes of them waits until all are made, as it would in practice.
            shadowOf(looper).pause()
            calls()
            shadowOf(looper).unPause()
        }
        settle(looper)
    }

    private fun call(
        callback: NetworkCallback,
        call: Script.Callback,
    ) {
        val network = network(call.network)
        when (call.on) {
            "available" -> callback.onAvailable(network)
            "capabilities" -> callback.onCapabilitiesChanged(network, capabilities(call))
            "blocked" -> if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.Q) callback.onBlockedStatusChanged(network, call.blocked)
            "lost" -> callback.onLost(network)
            else -> error("unknown callback: ${call.on}")
        }
    }

    private fun capabilities(call: Script.Callback): NetworkCapabilities {
        val capabilities = ShadowNetworkCapabilities.newInstance()
        val shadow = shadowOf(capabilities)
        val all =
            mapOf(
                NetworkCapabilities.NET_CAPABILITY_VALIDATED to call.validated,
                NetworkCapabilities.NET_CAPABILITY_CAPTIVE_PORTAL to call.hasCaptivePortal,
                NetworkCapabilities.NET_CAPABILITY_NOT_VPN to !call.isVpn,
            )
        for ((capability, isThere) in all) if (isThere) shadow.addCapability(capability) else shadow.removeCapability(capability)
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.P && !call.suspended) {
            shadow.addCapability(NetworkCapabilities.NET_CAPABILITY_NOT_SUSPENDED)
        }
        return capabilities
    }
}
