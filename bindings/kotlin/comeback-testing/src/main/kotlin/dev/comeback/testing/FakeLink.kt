// A network link for tests and demos: real sockets on loopback, which can be cut and restored.
package dev.comeback.testing

import dev.comeback.ManualConnectivity
import java.io.IOException
import java.net.BindException
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ScheduledThreadPoolExecutor
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.random.Random

/**
 * Stands between a client and a server: the client connects to [port] on 127.0.0.1, what it says is passed on. While the link is cut, connections
 * die by a reset and new ones are refused.
 *
 * [connectivity] is told what happens, as a phone is told: at once, or late. It starts online.
 *
 * Every connection takes two threads; this is for tens of them. May be used from any thread.
 */
public class FakeLink private constructor(
    private val server: InetSocketAddress,
    /** What the phone knows of the link. */
    public val connectivity: ManualConnectivity,
) : AutoCloseable {
    private val lock = Any()
    private val connections: MutableSet<Connection> = ConcurrentHashMap.newKeySet()
    private var listening: Listening? = null
    private var words = 0
    private val late =
        ScheduledThreadPoolExecutor(1) { task -> thread(start = false, isDaemon = true, name = "fake-link-telling") { task.run() } }

    /** Where clients connect; it stays the same for the link's whole life. */
    public val port: Int

    init {
        port = listenAnywhere()
        connectivity.available()
    }

    /**
     * Cuts the link. [connectivity] hears of it after [toldAfterMillis]; 0: before this returns. It never hears of it if the link is restored
     * earlier.
     */
    @JvmOverloads
    public fun cut(toldAfterMillis: Long = 0) {
        synchronized(lock) {
            if (late.isShutdown) return
            stop()
            tell(toldAfterMillis) { connectivity.lost() }
        }
    }

    /**
     * Restores the link. [connectivity] hears of it after [toldAfterMillis]; 0: before this returns. It never hears of it if the link is cut
     * earlier.
     */
    @JvmOverloads
    public fun restore(toldAfterMillis: Long = 0) {
        synchronized(lock) {
            if (late.isShutdown) return
            if (listening == null) listen(port)
            tell(toldAfterMillis) { connectivity.available() }
        }
    }

    /** Ends the link and its connections for good; [connectivity] hears nothing more. */
    override fun close() {
        synchronized(lock) {
            words++
            late.shutdownNow()
            stop()
        }
    }

    private fun stop() {
        listening?.stop()
        listening = null
        connections.forEach { it.reset() }
    }

    /** Only the last word is told: a late one that another has overtaken would leave the phone in the wrong state for ever. */
    private fun tell(
        afterMillis: Long,
        word: () -> Unit,
    ) {
        val mine = ++words
        if (afterMillis <= 0) return word()
        late.schedule({ synchronized(lock) { if (mine == words) word() } }, afterMillis, TimeUnit.MILLISECONDS)
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
        val socket = ServerSocket()
        try {
            socket.reuseAddress = true
            socket.bind(InetSocketAddress(LOOPBACK, port))
        } catch (failure: IOException) {
            socket.close()
            throw failure
        }
        listening = Listening(socket)
    }

    private inner class Listening(
        private val socket: ServerSocket,
    ) {
        private val acceptor = thread(isDaemon = true, name = "fake-link-${socket.localPort}") { accept() }

        private fun accept() {
            while (true) {
                val client =
                    try {
                        socket.accept()
                    } catch (_: IOException) {
                        return
                    }
                val connection = Connection(client)
                connections += connection
                connection.start()
            }
        }

        /** A closed socket listens on while a thread is still inside `accept`. After this no connection is added. */
        fun stop() {
            socket.close()
            var interrupted = false
            while (acceptor.isAlive) {
                try {
                    acceptor.join()
                } catch (_: InterruptedException) {
                    interrupted = true
                }
            }
            if (interrupted) Thread.currentThread().interrupt()
        }
    }

    private inner class Connection(
        private val client: Socket,
    ) {
        private val upstream = Socket()

        fun start() {
            thread(isDaemon = true, name = "fake-link-up") {
                try {
                    // Else Nagle's algorithm and a late acknowledgement add 40 ms to some answers.
                    client.tcpNoDelay = true
                    upstream.tcpNoDelay = true
                    upstream.connect(server)
                } catch (_: IOException) {
                    reset()
                    return@thread
                }
                val down = thread(isDaemon = true, name = "fake-link-down") { pump(upstream, client) }
                pump(client, upstream)
                down.join()
                connections -= this
                closeQuietly(client)
                closeQuietly(upstream)
            }
        }

        /** Passes on bytes and the end of them. */
        private fun pump(
            from: Socket,
            to: Socket,
        ) {
            try {
                val source = from.getInputStream()
                val sink = to.getOutputStream()
                val buffer = ByteArray(16 * 1024)
                while (true) {
                    val count = source.read(buffer)
                    if (count < 0) break
                    sink.write(buffer, 0, count)
                }
                to.shutdownOutput()
            } catch (_: IOException) {
                reset()
            }
        }

        fun reset() {
            connections -= this
            for (socket in arrayOf(client, upstream)) {
                try {
                    // With no time to linger, closing is a reset.
                    socket.setSoLinger(true, 0)
                } catch (_: IOException) {
                    // Closed already.
                }
                closeQuietly(socket)
            }
        }
    }

    public companion object {
        private val LOOPBACK: InetAddress = InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1))

        /** A link to the server on this [port] of 127.0.0.1. */
        @JvmStatic
        @JvmOverloads
        public fun to(
            port: Int,
            connectivity: ManualConnectivity = ManualConnectivity(),
        ): FakeLink = FakeLink(InetSocketAddress(LOOPBACK, port), connectivity)

        /** A link to [server]. */
        @JvmStatic
        @JvmOverloads
        public fun to(
            server: InetSocketAddress,
            connectivity: ManualConnectivity = ManualConnectivity(),
        ): FakeLink = FakeLink(server, connectivity)
    }
}

private fun closeQuietly(socket: Socket) {
    try {
        socket.close()
    } catch (_: IOException) {
        // It is gone either way.
    }
}
