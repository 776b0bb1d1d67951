// Listens to Android on a thread of its own, and tells the hub.
package dev.comeback.android

import android.annotation.TargetApi
import android.content.Context
import android.net.ConnectivityManager
import android.os.Build
import android.os.Handler
import android.os.HandlerThread
import android.os.Process
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.NetworkState

/**
 * All that is asked of the system is asked on this thread, and never inside a callback: a call to ConnectivityManager is one
 * to another process, and an answer got in a callback may be older than the callback. Nothing that goes wrong leaves this class; then the state is
 * unknown. The thread has the default priority: it is the one that wakes calls, and they wait behind its locks.
 *
 * @param context the application's
 */
@OptIn(InternalComebackApi::class)
internal class NetworkMonitor(
    private val context: Context,
) {
    val hub = ManualConnectivity()
    val names = NetworkNames(isOffline = { hub.snapshot.state == NetworkState.OFFLINE }) { callback?.network }

    private val lock = Any()
    private var handler: Handler? = null

    /** What was posted before there was a [handler]. */
    private val early = ArrayList<() -> Unit>()
    private var closed = false

    @Volatile
    private var callback: DefaultNetworkCallback? = null
    private var service: ConnectivityManager? = null
    private var idleness: IdleReceiver? = null
    private var airplane: AirplaneReceiver? = null

    private val thread =
        object : HandlerThread("comeback-network", Process.THREAD_PRIORITY_DEFAULT) {
            override fun onLooperPrepared() {
                val own = Handler(looper)
                val isWanted =
                    synchronized(lock) {
                        handler = own
                        !closed
                    }
                if (isWanted) begin(own)
                // Complete: who comes now posts.
                for (action in early) orNull(action)
                early.clear()
                if (!isWanted) end()
            }
        }

    /** Returns at once. */
    fun start() {
        thread.start()
    }

    /** Returns at once. A thread that has not come up yet sees it when it does. */
    fun close() {
        val running =
            synchronized(lock) {
                closed = true
                handler
            }
        running?.post { end() }
    }

    /** Runs [action] on the monitor's thread, as soon as that has come up; dropped if it no longer runs. */
    fun post(action: () -> Unit) {
        synchronized(lock) { handler.also { if (it == null) early += action } }?.post { orNull(action) }
    }

    private fun begin(own: Handler) {
        // Before the network is asked for, so that no loss in airplane mode is taken for another one.
        airplane = orNull { AirplaneReceiver.registered(context, own, hub::deliberate) }
        orNull { register(own) } ?: orNull { unregister() }
        idleness = orNull { IdleReceiver.registered(context, own) { hub.recheck() } }
        // Registered first: loading takes a tenth of a second and more, in which the network may change.
        orNull { hub.warmUp() }
    }

    /** Throws whatever the system does: SecurityException without the permission or on some Android 11, TooManyRequestsException … */
    private fun register(own: Handler) {
        val service = context.getSystemService(Context.CONNECTIVITY_SERVICE) as ConnectivityManager
        val callback = DefaultNetworkCallback(own, hub)
        this.service = service
        this.callback = callback
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.O) {
            registerOn(own, service, callback)
        } else {
            service.registerDefaultNetworkCallback(callback)
        }
        // Without a network no callback comes, so it is asked for once.
        if (service.activeNetwork == null) hub.noneAtStart()
    }

    /** A function of its own, so that the check of the API level can tell what stands behind a look at SDK_INT. */
    @TargetApi(Build.VERSION_CODES.O)
    private fun registerOn(
        own: Handler,
        service: ConnectivityManager,
        callback: DefaultNetworkCallback,
    ) {
        service.registerDefaultNetworkCallback(callback, own)
    }

    private fun unregister() {
        val registered = callback ?: return
        callback = null
        registered.stop()
        orNull { hub.failed() }
        // Throws if it never was registered.
        orNull { service?.unregisterNetworkCallback(registered) }
    }

    private fun end() {
        idleness?.let { orNull { it.unregister() } }
        airplane?.let { orNull { it.unregister() } }
        unregister()
        hub.close()
        thread.quit()
    }
}
