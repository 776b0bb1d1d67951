// A network link for tests and demos: real sockets on loopback, and outages that are a phone's.
package dev.comeback.testing

import dev.comeback.ManualConnectivity
import java.io.IOException
import java.net.BindException
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.UnknownHostException
import java.nio.channels.SocketChannel
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ScheduledThreadPoolExecutor
import java.util.concurrent.TimeUnit
import javax.net.SocketFactory
import kotlin.concurrent.thread
import kotlin.concurrent.withLock
import kotlin.random.Random

/**
 * Stands between a client and a server: the client connects to [port] on 127.0.0.1, and what either says is passed on. [cut] ends that, [restore]
 * brings it back. What happens in between is an [Outage]; the usual one is a phone's in a tunnel.
 *
 * [connectivity] is told of a loss and of a return, at once or late, as a phone is told. It starts online.
 *
 * A client that uses [socketFactory] and [resolve] also fails as on Android while the phone knows that it has no network:
 *
 *     OkHttpClient.Builder().socketFactory(link.socketFactory).dns { host -> link.resolve(host) }
 *
 * Every connection takes two threads; this is for tens of them. May be used from any thread.
 */
public class FakeLink private constructor(
    private val server: InetSocketAddress,
    /** What the phone knows of the link. */
    public val connectivity: ManualConnectivity,
) : AutoCloseable {
    /** What a link without signal does to those who use it. */
    public enum class Outage {
        /**
         * The link swallows packets, and nobody is told. A connect hangs: the system sends its SYN again after 1, 3 and 7 s (a Linux kernel from
         * 6.5 on: after 1, 2, 3, 4 and 6 s), and the first that meets a live link connects. What was sent waits for its sender to send it again,
         * 0.3, 0.9, 2.1, 4.5 s … after the first time; if the link is back by then, it goes on. Nothing is reset.
         *
         * Once the phone notices the loss, it is a phone without a network, until it hears of the return: connections are reset (the server is
         * not told) and new ones are refused at once. Only a connect that hangs already hangs until its next SYN, unless its socket is from
         * [socketFactory].
         *
         * The hanging connects rely on a system that drops a SYN when the queue of accepted connections is full, as Linux and macOS do. On
         * Windows a connect is refused.
         */
        BLACK_HOLE,

        /** A server, or something before it, that goes away: connections are reset on both sides, new ones are refused. */
        RESET,
    }

    private val connections: MutableSet<LinkConnection> = ConcurrentHashMap.newKeySet()
    private val signal = Signal()
    private val sockets = PhoneSockets(signal)
    private var queue: AcceptQueue? = null
    private var words = 0
    private val late =
        ScheduledThreadPoolExecutor(1) { task -> thread(start = false, isDaemon = true, name = "fake-link-telling") { task.run() } }

    /** Where clients connect; it stays the same for the link's whole life. */
    public val port: Int

    /**
     * Sockets of the phone. While it knows that it has no network, a connect fails at once with a [java.net.ConnectException]; one that hangs
     * when the phone notices the loss fails at that moment.
     */
    public val socketFactory: SocketFactory get() = sockets

    init {
        port = listenAnywhere()
        connectivity.available()
    }

    /**
     * Cuts the link. The phone notices after [toldAfterMillis], and [connectivity] hears of it; 0: before this returns. It never does if the link
     * is restored earlier.
     */
    @JvmOverloads
    public fun cut(
        toldAfterMillis: Long = 0,
        outage: Outage = Outage.BLACK_HOLE,
    ) {
        signal.lock.withLock {
            if (late.isShutdown) return
            when (outage) {
                Outage.BLACK_HOLE -> {
                    if (signal.state == Signal.State.ALIVE && toldAfterMillis > 0) {
                        queue?.fill()
                        signal.state = Signal.State.SWALLOWED
                    }
                }

                Outage.RESET -> {
                    refuse(Signal.State.REFUSED)
                    connections.forEach { it.reset() }
                }
            }
            tell(toldAfterMillis) {
                if (outage == Outage.BLACK_HOLE) leave()
                connectivity.lost()
            }
        }
    }

    /**
     * Restores the link. [connectivity] hears of it after [toldAfterMillis]; 0: before this returns. It never hears of it if the link is cut
     * earlier. A phone that has noticed the loss of a [black hole][Outage.BLACK_HOLE] can use the link from when it hears of the return.
     */
    @JvmOverloads
    public fun restore(toldAfterMillis: Long = 0) {
        signal.lock.withLock {
            if (late.isShutdown) return
            when (signal.state) {
                Signal.State.SWALLOWED -> {
                    queue?.drain()
                    signal.state = Signal.State.ALIVE
                }

                Signal.State.REFUSED -> {
                    listen(port)
                }

                Signal.State.ALIVE, Signal.State.NO_NETWORK -> {}
            }
            tell(toldAfterMillis) {
                if (signal.state == Signal.State.NO_NETWORK) listen(port)
                connectivity.available()
            }
        }
    }

    /** The address of the link, for any [host]; as a resolver of the phone, it finds nothing while the phone knows that it has no network. */
    @Throws(UnknownHostException::class)
    public fun resolve(host: String): List<InetAddress> {
        if (signal.isWithoutNetwork) throw UnknownHostException("Unable to resolve host \"$host\": No address associated with hostname")
        return listOf(LOOPBACK)
    }

    /** Ends the link and its connections for good; [connectivity] hears nothing more. */
    override fun close() {
        signal.lock.withLock {
            words++
            late.shutdownNow()
            refuse(Signal.State.REFUSED)
            connections.forEach { it.reset() }
        }
    }

    /** The phone notices that the network is gone. */
    private fun leave() {
        if (signal.state == Signal.State.REFUSED) return
        refuse(Signal.State.NO_NETWORK)
        connections.forEach { it.leave() }
        sockets.leave()
    }

    private fun refuse(state: Signal.State) {
        signal.state = state
        queue?.close()
        queue = null
    }

    /** Only the last word is told: a late one that another has overtaken would leave the phone in the wrong state for ever. */
    private fun tell(
        afterMillis: Long,
        word: () -> Unit,
    ) {
        val mine = ++words
        if (afterMillis <= 0) return word()
        late.schedule({ signal.lock.withLock { if (mine == words) word() } }, afterMillis, TimeUnit.MILLISECONDS)
    }

    /**
     * Not a port that the system gives to connections: while the link is cut, one of them could take it, or even connect to itself.
     */
    private fun listenAnywhere(): Int {
        repeat(100) {
            val port = Random.nextInt(10_000, 30_000)
            try {
                listen(port)
                return port
            } catch (_: BindException) {
                // Taken; another one.
            }
        }
        throw BindException("no free port found")
    }

    private fun listen(port: Int) {
        queue = AcceptQueue(InetSocketAddress(LOOPBACK, port), ::accept)
        signal.state = Signal.State.ALIVE
    }

    private fun accept(client: SocketChannel) {
        val connection = LinkConnection(client, server, signal) { connections -= it }
        connections += connection
        connection.start()
    }

    public companion object {
        private val LOOPBACK: InetAddress = InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1))

        /** A link to the server on this [port] of 127.0.0.1. */
        @JvmStatic
        @JvmOverloads
        public fun to(
            port: Int,
            connectivity: ManualConnectivity = ManualConnectivity(concernsLoopback = true),
        ): FakeLink = FakeLink(InetSocketAddress(LOOPBACK, port), connectivity)

        /** A link to [server]. */
        @JvmStatic
        @JvmOverloads
        public fun to(
            server: InetSocketAddress,
            connectivity: ManualConnectivity = ManualConnectivity(concernsLoopback = true),
        ): FakeLink = FakeLink(server, connectivity)
    }
}

internal fun closeQuietly(channel: AutoCloseable) {
    try {
        channel.close()
    } catch (_: IOException) {
        // It is gone either way.
    }
}
