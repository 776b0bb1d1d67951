// What an app hands to Comeback on Android: the process's one view of its network.
package dev.comeback.android

import android.content.Context
import dev.comeback.Connectivity
import dev.comeback.InternalComebackApi
import dev.comeback.NetworkSnapshot
import dev.comeback.Subscription
import dev.comeback.driver.NameLookUp
import java.net.InetAddress
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicReference

/**
 * Watches the default network of this app.
 *
 * ```
 * val comeback = Comeback { connectivity = AndroidConnectivity(context) }
 * ```
 *
 * Making and closing one do no work on the calling thread. However many there are, the process registers one callback, on a thread of its own; the last
 * one that is closed unregisters it. If nothing can be registered (no permission, too many callbacks, a faulty system), the state stays unknown: nothing
 * fails, and only timers end waits.
 *
 * It needs `android.permission.ACCESS_NETWORK_STATE`, which the artefact's manifest brings.
 *
 * @property concernsLoopback whether calls to this device itself are concerned too: for a test or a demo whose server is there, or behind `adb reverse`
 */
@OptIn(InternalComebackApi::class)
public class AndroidConnectivity
    @JvmOverloads
    constructor(
        context: Context,
        override val concernsLoopback: Boolean = false,
    ) : Connectivity,
        NameLookUp,
        AutoCloseable {
        private val monitor = SharedMonitor.acquire(context)
        private val closed = AtomicBoolean()

        override val snapshot: NetworkSnapshot get() = monitor.hub.snapshot

        override fun subscribe(onChange: () -> Unit): Subscription = monitor.hub.subscribe(onChange)

        /** The app knows that the network is back. Every pending drawn wait ends. */
        public fun restored() {
            monitor.post { monitor.hub.restored() }
        }

        /** Closes this view. The last one ends the watching, and from then on nothing is known. May be called more than once. */
        override fun close() {
            if (closed.compareAndSet(false, true)) SharedMonitor.release()
        }

        /** @suppress */
        @InternalComebackApi
        override val network: Any? get() = monitor.names.network

        /** @suppress */
        @InternalComebackApi
        override fun lookUp(
            network: Any,
            host: String,
        ): List<InetAddress>? = monitor.names.lookUp(network, host)

        public companion object {
            /** Held for as long as the process lives. */
            private val forLife = AtomicReference<AndroidConnectivity>()

            /**
             * Begins to watch for as long as the process lives, and loads the native library meanwhile, all in the background. The artefact's
             * [ComebackInitializer] calls it before the app's own code runs; an app that has removed that from its manifest may call it when it likes.
             */
            @JvmStatic
            public fun start(context: Context) {
                if (forLife.get() != null) return
                val started = AndroidConnectivity(context)
                if (!forLife.compareAndSet(null, started)) started.close()
            }

            /** For tests: lives of processes do not end in them. */
            internal fun stop() {
                forLife.getAndSet(null)?.close()
            }
        }
    }
