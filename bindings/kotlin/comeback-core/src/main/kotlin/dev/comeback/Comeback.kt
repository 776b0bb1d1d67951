// The one object per app that all clients share: the network's state, the listener, the native library.
package dev.comeback

import dev.comeback.driver.AdapterCheck
import dev.comeback.driver.CallNetwork
import dev.comeback.driver.ConnectionAges
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.LookUpMemory
import dev.comeback.driver.NameLookUp
import dev.comeback.driver.SystemTime
import dev.comeback.driver.Time
import dev.comeback.driver.hurry
import dev.comeback.driver.orNull
import dev.comeback.internal.Core
import dev.comeback.internal.NativeCore
import dev.comeback.internal.Subscribers
import dev.comeback.internal.Waits
import dev.comeback.internal.contained
import dev.comeback.internal.endsTheVirtualMachine
import dev.comeback.internal.isLoopback
import dev.comeback.internal.rehearse
import java.util.ServiceLoader
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executor
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.atomic.AtomicReference
import kotlin.concurrent.thread

/**
 * The network's state and the listener, which all clients of an app share. Make one per app; it may be used from any thread.
 *
 * ```
 * val comeback = Comeback {
 *     connectivity = ManualConnectivity()
 *     listener = RetryListener { println(it) }
 * }
 * ```
 *
 * Making one does no work on the calling thread: the native library is loaded in the background. Where it cannot be loaded nothing fails;
 * requests go once, the listener hears [RetryEvent.Unavailable], and [selfCheck] throws.
 */
public class Comeback internal constructor(
    /** What is known about the network. */
    public val connectivity: Connectivity,
    internal val listener: RetryListener?,
    /**
     * The time it lives in.
     *
     * @suppress
     */
    @property:InternalComebackApi public val time: Time,
    internal val core: Core,
    /** What a call's waits are drawn from; null: from the operating system. */
    internal val seeds: (() -> Long)? = null,
    /**
     * See [Builder.transportExceptions].
     *
     * @suppress
     */
    @property:InternalComebackApi public val transportExceptions: Set<Class<out Throwable>> = emptySet(),
    private val listenerExecutor: Executor? = null,
) : AutoCloseable {
    private val calls = AtomicLong()
    private val told = ConcurrentHashMap.newKeySet<String>()
    private val changes = Subscribers()
    private val atConnectivity = AtomicReference<Subscription>()
    internal val waits = Waits(this)

    /**
     * Which connections attempts may begin on, for all clients together.
     *
     * @suppress
     */
    @InternalComebackApi
    public val connectionAges: ConnectionAges by lazy { ConnectionAges(snapshot.path) }

    /**
     * How to ask for a name again.
     *
     * @suppress
     */
    @InternalComebackApi
    public val lookUpMemory: LookUpMemory by lazy { LookUpMemory(time, connectivity as? NameLookUp) }

    /**
     * Whether [close] was called. Adapters then let requests pass.
     *
     * @suppress
     */
    @Volatile
    @InternalComebackApi
    public var isClosed: Boolean = false
        private set

    /**
     * The network's newest snapshot.
     *
     * @suppress
     */
    @InternalComebackApi
    public val snapshot: NetworkSnapshot
        get() {
            // It is read before an attempt: from now on the warm-up may hold what a request waits for.
            warmUp?.let(::hurry)
            contained { return connectivity.snapshot }
            return NetworkSnapshot.UNKNOWN
        }

    private val known = CallNetwork(this, isKnown = true)
    private val unknown = CallNetwork(this, isKnown = false)

    /**
     * The network as a call to [host] knows it whose policy has these [facts]: of nothing under `offline = ignore`, nor where the host is this machine.
     *
     * @suppress
     */
    @InternalComebackApi
    public fun networkFor(
        facts: DriverFacts?,
        host: String?,
    ): CallNetwork = if (facts?.ignoresNetwork == true || (host != null && isLoopback(host) && !concernsLoopback())) unknown else known

    /**
     * See [Connectivity.concernsLoopback].
     *
     * @suppress
     */
    @InternalComebackApi
    public fun concernsLoopback(): Boolean {
        contained { return connectivity.concernsLoopback }
        return false
    }

    /**
     * Whether anyone listens; if not, an adapter need not ask for a label.
     *
     * @suppress
     */
    @InternalComebackApi
    public val hasListener: Boolean get() = listener != null

    /** Whether the app says where it is called. */
    internal val hasListenerExecutor: Boolean get() = listenerExecutor != null

    /**
     * Calls [onChange] after each change of the network, and at [close].
     *
     * @suppress
     */
    @InternalComebackApi
    public fun subscribe(onChange: () -> Unit): Subscription {
        hear()
        return changes.subscribe(onChange)
    }

    /** Subscribes once, at the first need, and then until [close]: attempts and waits come and go by the thousand. */
    internal fun hear() {
        if (atConnectivity.get() != null || isClosed) return
        contained {
            val ours = connectivity.subscribe(::changed)
            val isFirst = atConnectivity.compareAndSet(null, ours)
            if (!isFirst || isClosed) ours.close()
        }
    }

    private fun changed() {
        contained { waits.wakeThoseThatAreOver() }
        changes.notifyEach()
    }

    /**
     * Loads the native library if that is not done yet, lets it make one decision, and looks whether the HTTP clients on the class path are new enough. For a
     * test, or a check at start-up off the main thread: the first call takes some hundred milliseconds.
     *
     * @throws ComebackUnavailableException if the library cannot be used on this device, or if a client is too old; it names its version
     */
    public fun selfCheck() {
        core.load()
        // A shrinker may have renamed what is looked for. Then there is nothing to say.
        val adapters = orNull { ServiceLoader.load(AdapterCheck::class.java, AdapterCheck::class.java.classLoader).toList() }
        adapters?.forEach { adapter -> adapter.problem()?.let { throw it } }
    }

    /** Ends all waits; their calls end as cancelled. Later calls go once, as without Comeback. [connectivity] stays open: the app made it. */
    override fun close() {
        isClosed = true
        changed()
        contained { atConnectivity.get()?.close() }
    }

    internal fun nextCallId(): Long = calls.incrementAndGet()

    /** Runs [telling], which is about to [tell] one event or several: on this thread, unless the app has an executor for it. Nothing is lost if that refuses. */
    internal inline fun onListenersThread(crossinline telling: () -> Unit) {
        if (listener == null || listenerExecutor == null) return telling()
        var hasBegun = false
        try {
            listenerExecutor.execute {
                hasBegun = true
                telling()
            }
        } catch (thrown: Throwable) {
            if (!hasBegun) return telling()
            if (thrown.endsTheVirtualMachine()) throw thrown
        }
    }

    internal fun tell(event: RetryEvent) {
        contained { listener?.onEvent(event) }
    }

    /**
     * One of Comeback's libraries cannot be used: the listener hears so once.
     *
     * @suppress
     */
    @InternalComebackApi
    public fun reportUnavailable(problem: ComebackUnavailableException) {
        if (told.add(problem.file)) {
            onListenersThread { tell(RetryEvent.Unavailable(problem.file, problem.architecture, problem.cause ?: problem)) }
        }
    }

    /**
     * A client was put together in a way that its app hardly meant: the listener hears so once.
     *
     * @param problem what is there twice, and what to remove
     * @suppress
     */
    @InternalComebackApi
    public fun reportSetup(problem: String) {
        if (told.add(problem)) onListenersThread { tell(RetryEvent.SetupProblem(problem)) }
    }

    /** While it works. */
    @Volatile
    private var warmUp: Thread? = null

    /** So that no request pays for loading classes and library. It has the lowest priority until a request comes. */
    private fun warmUp() {
        contained {
            thread(start = false, isDaemon = true, name = "comeback-warm-up", priority = Thread.MIN_PRIORITY) {
                try {
                    core.load()
                    // Another core is a test's, which counts what it is asked.
                    if (core === NativeCore) rehearse(core)
                } catch (problem: ComebackUnavailableException) {
                    reportUnavailable(problem)
                } catch (thrown: Throwable) {
                    // A fault in the core shows again at the first failure, in the call it happens to.
                    if (thrown is VirtualMachineError) throw thrown
                } finally {
                    warmUp = null
                }
            }.also { warmUp = it }.start()
        }
    }

    /** What a [Comeback] is made of; everything has a default. */
    public class Builder internal constructor() {
        /** What watches the network. By default nothing does: the state is unknown, and only timers end waits. */
        public var connectivity: Connectivity? = null

        /** Hears what happens to calls. */
        public var listener: RetryListener? = null

        /**
         * Where [listener] is called; for one that writes to a disk, or may block otherwise. No call waits for it then, and it may hear of a call's end after
         * the caller has the answer. Events of one call still come in order and one at a time. What it has not heard yet stays in memory.
         *
         * By default it is called on the thread that drives the call, and the call waits for it. The same happens where the executor throws. An executor that
         * drops a task without a word loses all that is told of that call from then on.
         */
        public var listenerExecutor: Executor? = null

        /**
         * Exceptions that a transport of the app's throws, subclasses included, where Comeback does not know that transport. One that has a cause is
         * judged by it; one that has none is an I/O error of which nobody knows more, so its request goes again if it may be repeated. An exception that
         * is neither the platform's nor the HTTP client's stops the call otherwise: it has a meaning that only the app knows.
         *
         * Apollo's `ApolloNetworkException` and Cronet's exceptions are known, as long as a shrinker does not rename them. A type that carries a server's
         * answer does not belong here.
         */
        public var transportExceptions: Set<Class<out Throwable>> = emptySet()

        /**
         * The time to live in; for tests.
         *
         * @suppress
         */
        @InternalComebackApi
        public var time: Time = SystemTime

        /**
         * Seeds of its calls, one for each call that fails; for simulations that must be repeatable. By default the operating system's.
         *
         * @suppress
         */
        @InternalComebackApi
        public var seeds: (() -> Long)? = null

        internal var core: Core = NativeCore

        /** The [Comeback]. Its native library is loaded in the background. */
        public fun build(): Comeback =
            Comeback(
                connectivity ?: ManualConnectivity(),
                listener,
                time,
                core,
                seeds,
                transportExceptions.toSet(),
                listenerExecutor,
            ).apply {
                warmUp()
            }
    }

    public companion object {
        /** For Java; in Kotlin `Comeback { … }`. */
        @JvmStatic
        public fun builder(): Builder = Builder()
    }
}

/** Makes a [Comeback]; see [Comeback.Builder]. */
@JvmSynthetic
public fun Comeback(configure: Comeback.Builder.() -> Unit = {}): Comeback = Comeback.builder().apply(configure).build()
