// A way to a server whose connections can die without a word, while new ones work.
package dev.comeback.ktor

import java.io.IOException
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.concurrent.thread

/** Hands on bytes to and from [port] on loopback. */
internal class DyingTunnel(
    private val port: Int,
) : AutoCloseable {
    private class Way(
        val near: Socket,
        val far: Socket,
    ) {
        @Volatile
        var isDead = false
    }

    private val loopback = InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1))
    private val listening = ServerSocket(0, 1_000, loopback)
    private val ways = CopyOnWriteArrayList<Way>()
    val url = "http://127.0.0.1:${listening.localPort}/"

    /** How many connections were made. */
    val connections: Int get() = ways.size

    init {
        thread(isDaemon = true) {
            quietly {
                while (true) {
                    val near = listening.accept()
                    val way = Way(near, Socket(loopback, port))
                    ways += way
                    hand(way, way.near, way.far)
                    hand(way, way.far, way.near)
                }
            }
        }
    }

    private fun hand(
        way: Way,
        from: Socket,
        to: Socket,
    ) = thread(isDaemon = true) {
        quietly {
            val bytes = ByteArray(16 * 1024)
            while (true) {
                val read = from.getInputStream().read(bytes)
                if (read < 0) break
                // What comes on a dead one is lost, and neither side hears of it.
                if (!way.isDead) to.getOutputStream().write(bytes, 0, read)
            }
        }
        if (!way.isDead) {
            quietly { from.close() }
            quietly { to.close() }
        }
    }

    /** All connections that are there die. */
    fun die(): Unit = ways.forEach { it.isDead = true }

    override fun close() {
        listening.close()
        for (way in ways) {
            quietly { way.near.close() }
            quietly { way.far.close() }
        }
    }

    private inline fun quietly(action: () -> Unit) {
        try {
            action()
        } catch (_: IOException) {
            // One side went away.
        }
    }
}
