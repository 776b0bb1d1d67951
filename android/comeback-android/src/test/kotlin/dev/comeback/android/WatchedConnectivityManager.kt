// ConnectivityManager as a test wants it: it remembers who asked it what on which thread, and refuses when told to.
package dev.comeback.android

import android.net.ConnectivityManager
import android.net.ConnectivityManager.NetworkCallback
import android.net.Network
import android.os.Handler
import org.robolectric.annotation.Implementation
import org.robolectric.annotation.Implements
import org.robolectric.shadows.ShadowConnectivityManager
import java.util.concurrent.CopyOnWriteArrayList

@Implements(ConnectivityManager::class)
public class WatchedConnectivityManager : ShadowConnectivityManager() {
    @Implementation
    override fun registerDefaultNetworkCallback(callback: NetworkCallback) {
        note("register")
        super.registerDefaultNetworkCallback(callback)
    }

    @Implementation
    override fun registerDefaultNetworkCallback(
        callback: NetworkCallback,
        handler: Handler,
    ) {
        note("register")
        super.registerDefaultNetworkCallback(callback, handler)
    }

    @Implementation
    override fun unregisterNetworkCallback(callback: NetworkCallback) {
        note("unregister")
        super.unregisterNetworkCallback(callback)
    }

    @Implementation
    override fun getActiveNetwork(): Network? {
        note("ask")
        return super.getActiveNetwork()
    }

    private fun note(what: String) {
        asked += what to Thread.currentThread().name
        refusals[what]?.let { throw it }
    }

    internal companion object {
        /** What was asked, and the asking thread's name. */
        val asked = CopyOnWriteArrayList<Pair<String, String>>()
        val refusals = HashMap<String, RuntimeException>()

        fun reset() {
            asked.clear()
            refusals.clear()
        }
    }
}
