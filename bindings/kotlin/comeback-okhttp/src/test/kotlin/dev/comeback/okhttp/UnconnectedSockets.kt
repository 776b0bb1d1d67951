// What a test's socket factory need not say: OkHttp asks for unconnected sockets only.
package dev.comeback.okhttp

import java.net.InetAddress
import java.net.Socket
import javax.net.SocketFactory

internal abstract class UnconnectedSockets : SocketFactory() {
    abstract override fun createSocket(): Socket

    final override fun createSocket(
        host: String?,
        port: Int,
    ): Socket = throw UnsupportedOperationException()

    final override fun createSocket(
        host: String?,
        port: Int,
        localHost: InetAddress?,
        localPort: Int,
    ): Socket = throw UnsupportedOperationException()

    final override fun createSocket(
        host: InetAddress?,
        port: Int,
    ): Socket = throw UnsupportedOperationException()

    final override fun createSocket(
        address: InetAddress?,
        port: Int,
        localAddress: InetAddress?,
        localPort: Int,
    ): Socket = throw UnsupportedOperationException()
}
