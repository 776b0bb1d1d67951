// One connection through a fake link.
package dev.comeback.testing

import java.io.IOException
import java.net.InetSocketAddress
import java.net.StandardSocketOptions
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel
import kotlin.concurrent.thread

/** Passes on what [client] and [server] say to each other, as the [signal] lets it. */
internal class LinkConnection(
    private val client: SocketChannel,
    private val server: InetSocketAddress,
    private val signal: Signal,
    private val ended: (LinkConnection) -> Unit,
) {
    private val upstream = SocketChannel.open()

    /** Nothing is passed on any more. */
    @Volatile
    private var over = false

    fun start() {
        thread(isDaemon = true, name = "fake-link-up") {
            try {
                // Else Nagle's algorithm and a late acknowledgement add 40 ms to some answers.
                client.setOption(StandardSocketOptions.TCP_NODELAY, true)
                upstream.setOption(StandardSocketOptions.TCP_NODELAY, true)
                upstream.connect(server)
            } catch (_: IOException) {
                reset()
                return@thread
            }
            val down = thread(isDaemon = true, name = "fake-link-down") { pump(upstream, client) }
            pump(client, upstream)
            down.join()
            if (over) return@thread
            closeQuietly(client)
            closeQuietly(upstream)
            ended(this)
        }
    }

    /** Passes on bytes, the end of them, and a reset. */
    private fun pump(
        from: SocketChannel,
        to: SocketChannel,
    ) {
        val buffer = ByteBuffer.allocate(16 * 1024)
        try {
            do {
                buffer.clear()
                val count = from.read(buffer)
                if (!signal.passes { over }) return
                buffer.flip()
                while (buffer.hasRemaining()) to.write(buffer)
            } while (count >= 0)
            to.shutdownOutput()
        } catch (_: IOException) {
            if (signal.passes { over }) reset()
        }
    }

    /** Ends the connection on both sides. */
    fun reset() {
        over = true
        signal.wakeAll()
        resetQuietly(client)
        resetQuietly(upstream)
        ended(this)
    }

    /** The phone has no network any more: its side of the connection is over, the server learns nothing. */
    fun leave() {
        over = true
        signal.wakeAll()
        resetQuietly(client)
    }
}

private fun resetQuietly(channel: SocketChannel) {
    try {
        // With no time to linger, closing is a reset.
        channel.setOption(StandardSocketOptions.SO_LINGER, 0)
    } catch (_: IOException) {
        // Closed already.
    }
    closeQuietly(channel)
}
