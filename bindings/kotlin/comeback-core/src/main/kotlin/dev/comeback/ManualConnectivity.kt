// Connectivity that is told by hand what the network does; the state machine behind it is the core's hub.
package dev.comeback

import dev.comeback.driver.SystemTime
import dev.comeback.driver.Time
import dev.comeback.ffi.ConnectivityHubInterface
import dev.comeback.internal.Core
import dev.comeback.internal.NativeCore
import dev.comeback.internal.Subscribers
import dev.comeback.internal.contained
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock
import dev.comeback.ffi.NetworkSnapshot as CoreSnapshot

/**
 * A platform's monitor, the app or a test tells it what the network does. May be used from any thread. Before the first event the state is unknown; it
 * stays unknown if the native library cannot be used.
 *
 * ```
 * val network = ManualConnectivity()
 * network.available() // later lost(), and available() or restored() when it is back
 * ```
 *
 * A network is named by a handle, any number that tells networks apart. The first event loads the native library, unless a [Comeback] did.
 * Telling the same twice makes no native call. [close] frees the native object; later events are ignored.
 */
public class ManualConnectivity internal constructor(
    private val time: Time,
    private val core: Core,
    override val concernsLoopback: Boolean = false,
) : Connectivity,
    AutoCloseable {
    /**
     * The time its states and those of the calls have in common.
     *
     * @suppress
     */
    @InternalComebackApi
    @JvmOverloads
    public constructor(time: Time, concernsLoopback: Boolean = false) : this(time, NativeCore, concernsLoopback)

    /** @param concernsLoopback see [Connectivity.concernsLoopback]; true in tests whose server is on this machine */
    @JvmOverloads
    public constructor(concernsLoopback: Boolean = false) : this(SystemTime, NativeCore, concernsLoopback)

    /** What is known about the default network, as far as it was told here. */
    private data class Facts(
        val handle: Long,
        val blocked: Boolean,
        val suspended: Boolean,
        val validated: Boolean,
    )

    private val subscribers = Subscribers()
    private val lock = ReentrantLock()
    private var hub: ConnectivityHubInterface? = null
    private var facts: Facts? = null
    private var isDeliberate = false
    private var closed = false

    @Volatile
    override var snapshot: NetworkSnapshot = NetworkSnapshot.UNKNOWN
        private set

    override fun subscribe(onChange: () -> Unit): Subscription = subscribers.subscribe(onChange)

    /** The monitor has just registered, and there is no network. Ignored if anything is known already. */
    public fun noneAtStart() {
        publish { ask { hub, now -> hub.noneAtStart(now) } }
    }

    /**
     * The network [handle] is the default network now.
     *
     * @param blocked it carries nothing for this app
     * @param suspended it carries nothing for now, as in a tunnel
     * @param validated the platform has seen it reach the internet; a hint that wakes, never a condition; by default all but a suspended one
     */
    @JvmOverloads
    public fun available(
        handle: Long = 1,
        blocked: Boolean = false,
        suspended: Boolean = false,
        validated: Boolean = !suspended,
    ) {
        publish {
            val reported = Facts(handle, blocked, suspended, validated)
            if (reported == facts) return
            facts = reported
            ask { hub, now -> hub.available(now, handle, blocked, suspended, validated) }
        }
    }

    /** The default network [handle] has changed; ignored if it is not the default network. */
    @JvmOverloads
    public fun capabilities(
        handle: Long = 1,
        suspended: Boolean = false,
        validated: Boolean = !suspended,
    ) {
        publish {
            val reported = factsOf(handle)?.copy(suspended = suspended, validated = validated)
            if (reported != null && reported == facts) return
            facts = reported ?: facts
            ask { hub, now -> hub.capabilities(now, handle, suspended, validated) }
        }
    }

    /** The default network [handle] is blocked for this app, or no longer; ignored if it is not the default network. */
    @JvmOverloads
    public fun blocked(
        handle: Long = 1,
        blocked: Boolean = true,
    ) {
        publish {
            val reported = factsOf(handle)?.copy(blocked = blocked)
            if (reported != null && reported == facts) return
            facts = reported ?: facts
            ask { hub, now -> hub.blocked(now, handle, blocked) }
        }
    }

    /** The network [handle] is gone; ignored if it is not the default network. */
    @JvmOverloads
    public fun lost(handle: Long = 1) {
        publish {
            if (factsOf(handle) != null) facts = null
            ask { hub, now -> hub.lost(now, handle) }
        }
    }

    /** The monitor no longer knows anything, for instance because it could not register. */
    public fun failed() {
        publish {
            facts = null
            ask { hub, now -> hub.failed(now) }
        }
    }

    /**
     * The network was switched off on purpose, as by airplane mode, or no longer is. While it is [on], a loss counts as old however young it is, so
     * that [Offline.AUTO] does not wait for its end; when it is switched off without a network, the loss begins then.
     */
    public fun deliberate(on: Boolean) {
        publish {
            if (on == isDeliberate) return
            isDeliberate = on
            ask { hub, now -> hub.deliberate(now, on) }
        }
    }

    /** The app knows that the network is back. This always ends waits. */
    public fun restored() {
        publish { ask { hub, now -> hub.restored(now) } }
    }

    /**
     * Loads the native library and makes the hub, so that the first event need not.
     *
     * @suppress
     */
    @InternalComebackApi
    public fun warmUp() {
        lock.withLock {
            if (closed || hub != null) return
            // What is wrong with the core shows at the first event.
            contained { hub = core.hub() }
        }
    }

    /**
     * Nothing changed, but timers may have stood still: whoever waits looks at the clock again.
     *
     * @suppress
     */
    @InternalComebackApi
    public fun recheck() {
        subscribers.notifyEach()
    }

    /** Frees the native object; later events are ignored. */
    override fun close() {
        lock.withLock {
            closed = true
            contained { (hub as? AutoCloseable)?.close() }
        }
    }

    private fun factsOf(handle: Long): Facts? = facts?.takeIf { it.handle == handle }

    /** Publishes snapshots in the hub's order: the lock is held from the question to the publication, and released before subscribers are told. */
    private inline fun publish(newest: () -> NetworkSnapshot) {
        lock.withLock {
            if (closed) return
            val before = snapshot
            snapshot = newest()
            if (snapshot == before) return
        }
        subscribers.notifyEach()
    }

    private inline fun ask(event: (ConnectivityHubInterface, now: Long) -> CoreSnapshot): NetworkSnapshot {
        try {
            val hub = hub ?: core.hub().also { hub = it }
            val answer = event(hub, time.nanos())
            return NetworkSnapshot(NetworkState.valueOf(answer.state.name), answer.since, answer.epoch, answer.path)
        } catch (thrown: Throwable) {
            if (thrown is VirtualMachineError) throw thrown
            // Without the core nothing can be known any more, and nobody may be left waiting for a network.
            closed = true
            val known = snapshot
            return if (known.state ==
                NetworkState.UNKNOWN
            ) {
                known
            } else {
                NetworkSnapshot(NetworkState.UNKNOWN, time.nanos(), known.epoch + 1, known.path)
            }
        }
    }
}
