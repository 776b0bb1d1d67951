// Where connections to a fake link arrive.
package dev.comeback.testing

import java.io.IOException
import java.net.InetSocketAddress
import java.net.StandardSocketOptions
import java.nio.channels.ClosedChannelException
import java.nio.channels.SelectionKey
import java.nio.channels.Selector
import java.nio.channels.ServerSocketChannel
import java.nio.channels.SocketChannel
import kotlin.concurrent.thread

/**
 * Listens at [address] and hands each connection to [accepted]. While it is [full][fill], the system drops each SYN, as a link without signal does:
 * connecting takes as long as it does there, with the client's own retransmissions.
 *
 * [accepted] must not take a lock under which this is used.
 */
internal class AcceptQueue(
    private val address: InetSocketAddress,
    private val accepted: (SocketChannel) -> Unit,
) : AutoCloseable {
    private val selector = Selector.open()
    private val channel = ServerSocketChannel.open()
    private val key: SelectionKey
    private val fillers = mutableListOf<SocketChannel>()
    private val fillerPorts = mutableSetOf<Int>()
    private val acceptor: Thread

    init {
        try {
            channel.setOption(StandardSocketOptions.SO_REUSEADDR, true)
            channel.bind(address, LENGTH)
        } catch (failure: IOException) {
            channel.close()
            selector.close()
            throw failure
        }
        channel.configureBlocking(false)
        key = channel.register(selector, SelectionKey.OP_ACCEPT)
        acceptor = thread(isDaemon = true, name = "fake-link-${address.port}") { selector.use { accept() } }
    }

    private fun accept() {
        while (true) {
            selector.select()
            selector.selectedKeys().clear()
            synchronized(this) {
                if (!channel.isOpen) return
                if (fillers.isEmpty()) acceptAll()
            }
        }
    }

    private fun acceptAll() {
        while (true) {
            val client =
                try {
                    channel.accept() ?: return
                } catch (_: ClosedChannelException) {
                    return
                } catch (_: IOException) {
                    continue // That connection was over before it was accepted.
                }
            if (fillerPorts.remove((client.remoteAddress as InetSocketAddress).port)) closeQuietly(client) else accepted(client)
        }
    }

    /** Accepts nobody from now on, and takes up what room there is. */
    @Synchronized
    fun fill() {
        if (fillers.isNotEmpty()) return
        key.interestOps(0)
        selector.wakeup()
        // One more than its length fits in; one more waits, should another connection end within the queue.
        repeat(LENGTH + 2) {
            val filler = SocketChannel.open()
            fillers += filler
            filler.bind(InetSocketAddress(address.address, 0))
            filler.configureBlocking(false)
            filler.connect(address)
            fillerPorts += (filler.localAddress as InetSocketAddress).port
        }
    }

    /** Accepts who came in before [fill] did, and everybody from now on. When this returns, there is room. */
    @Synchronized
    fun drain() {
        fillers.forEach(::closeQuietly)
        fillers.clear()
        acceptAll()
        fillerPorts.clear()
        key.interestOps(SelectionKey.OP_ACCEPT)
        selector.wakeup()
    }

    /** Refuses connections, and resets those that nobody has accepted yet. After this nobody is accepted. */
    override fun close() {
        synchronized(this) {
            fillers.forEach(::closeQuietly)
            closeQuietly(channel)
        }
        // A channel listens on until its selector has let go of it.
        selector.wakeup()
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

    private companion object {
        /** Enough for all that connect at the same moment; each place costs two sockets while the queue is full. */
        const val LENGTH = 32
    }
}
