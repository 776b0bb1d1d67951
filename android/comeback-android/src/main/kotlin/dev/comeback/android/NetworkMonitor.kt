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
 * The system is asked on this thread only, and never inside a callback: a call to ConnectivityManager goes to another process, and its answer inside a
 * callback may be older than the callback. If anything goes wrong, the state is unknown; no exception leaves this class. The thread has the default
 * priority, because it wakes calls and they wait for its locks.
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
                // The list is complete: later actions are posted to the handler.
                for (action in early) orNull(action)
                early.clear()
                if (!isWanted) end()
            }
        }

    /** Returns at once. */
    fun start() {
        thread.start()
    }

    /** Returns at once. If the thread has not started yet, it ends when it does. */
    fun close() {
        val running =
            synchronized(lock) {
                closed = true
                handler
            }
        running?.post { end() }
    }

    /** Runs [action] on the monitor's thread, as soon as it has started; dropped if the thread has ended. */
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

    /** Throws what the system throws: SecurityException without the permission or on some Android 11, TooManyRequestsException … */
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
