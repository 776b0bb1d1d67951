// Sockets that fail as a phone's do while it has no network.
package dev.comeback.testing

import java.io.IOException
import java.net.ConnectException
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.Socket
import java.net.SocketAddress
import java.util.concurrent.ConcurrentHashMap
import javax.net.SocketFactory

/** What Android does to connects: they fail at once without a network, and those under way fail when it is lost. */
internal class PhoneSockets(
    private val signal: Signal,
) : SocketFactory() {
    private val connecting: MutableSet<Socket> = ConcurrentHashMap.newKeySet()

    /** The phone notices that the network is gone. */
    fun leave() = connecting.forEach(::closeQuietly)

    override fun createSocket(): Socket = PhoneSocket()

    override fun createSocket(
        host: String,
        port: Int,
    ): Socket = PhoneSocket().apply { connect(InetSocketAddress(host, port)) }

    override fun createSocket(
        host: InetAddress,
        port: Int,
    ): Socket = PhoneSocket().apply { connect(InetSocketAddress(host, port)) }

    override fun createSocket(
        host: String,
        port: Int,
        localHost: InetAddress,
        localPort: Int,
    ): Socket = createSocket(InetAddress.getByName(host), port, localHost, localPort)

    override fun createSocket(
        address: InetAddress,
        port: Int,
        localAddress: InetAddress,
        localPort: Int,
    ): Socket =
        PhoneSocket().apply {
            bind(InetSocketAddress(localAddress, localPort))
            connect(InetSocketAddress(address, port))
        }

    private inner class PhoneSocket : Socket() {
        override fun connect(endpoint: SocketAddress) = connect(endpoint, 0)

        override fun connect(
            endpoint: SocketAddress,
            timeout: Int,
        ) {
            connecting += this
            try {
                // Looked at after this is known to `leave`: one of the two sees the loss.
                if (signal.isWithoutNetwork) throw ConnectException("failed to connect to $endpoint: ENETUNREACH (Network is unreachable)")
                super.connect(endpoint, timeout)
            } catch (failure: IOException) {
                if (failure is ConnectException || !signal.isWithoutNetwork) throw failure
                throw ConnectException("failed to connect to $endpoint: ECONNABORTED (Software caused connection abort)")
            } finally {
                connecting -= this
            }
        }
    }
}
