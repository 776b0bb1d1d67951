// What a client, a server and a phone see of a link that is cut and restored; on real sockets.
package dev.comeback.testing

import dev.comeback.ManualConnectivity
import dev.comeback.NetworkState
import dev.comeback.driver.SystemTime
import java.io.Closeable
import java.io.IOException
import java.net.ConnectException
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.SocketException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue

class FakeLinkTest {
    private val opened = CopyOnWriteArrayList<Closeable>()

    private fun <T : Closeable> T.opened(): T = also { opened += it }

    @AfterTest
    fun closeAll() {
        opened.reversed().forEach { it.close() }
    }

    /** Accepts connections and lets [serve] have each. */
    private fun server(serve: (Socket) -> Unit): Int {
        val server = ServerSocket(0, 50, InetSocketAddress("127.0.0.1", 0).address).opened()
        thread(isDaemon = true) {
            while (true) {
                val socket =
                    try {
                        server.accept().opened()
                    } catch (_: IOException) {
                        return@thread
                    }
                thread(isDaemon = true) {
                    try {
                        serve(socket)
                    } catch (_: IOException) {
                        // The link was cut.
                    }
                }
            }
        }
        return server.localPort
    }

    /** Says back what it hears, until the end. */
    private fun echo(): Int =
        server { socket ->
            socket.getInputStream().copyTo(socket.getOutputStream())
            socket.close()
        }

    private fun link(port: Int): FakeLink = FakeLink.to(port).also { link -> Closeable { link.close() }.opened() }

    private fun connect(link: FakeLink): Socket =
        Socket().opened().apply {
            soTimeout = 10_000
            connect(InetSocketAddress("127.0.0.1", link.port), 10_000)
        }

    private fun Socket.say(text: String): String {
        getOutputStream().write(text.toByteArray())
        return String(getInputStream().readNBytes(text.length))
    }

    @Test
    fun `what either side says reaches the other, and so does the end`() {
        val client = connect(link(echo()))
        assertEquals("hello", client.say("hello"))
        val much = "x".repeat(1_000_000)
        thread(isDaemon = true) {
            client.getOutputStream().write(much.toByteArray())
            client.shutdownOutput()
        }
        assertEquals(much, String(client.getInputStream().readAllBytes()))
    }

    @Test
    fun `a loss that is noticed at once resets a connection, and refuses new ones`() {
        for (outage in FakeLink.Outage.entries) {
            val link = link(echo())
            val client = connect(link)
            client.say("hello")
            link.cut(outage = outage)
            assertFailsWith<SocketException> { client.getInputStream().read() }
            repeat(5) { assertFailsWith<ConnectException> { connect(link) } }
        }
    }

    @Test
    fun `where the other end goes away, the server's side of a connection is reset too`() {
        val ended = CountDownLatch(1)
        var end: Throwable? = null
        val port =
            server { socket ->
                socket.getOutputStream().write(1)
                end = runCatching { socket.getInputStream().read() }.exceptionOrNull()
                ended.countDown()
            }
        val link = link(port)
        connect(link).getInputStream().read()
        link.cut(outage = FakeLink.Outage.RESET)
        assertTrue(ended.await(10, TimeUnit.SECONDS))
        assertTrue(end is SocketException, "$end")
    }

    @Test
    fun `restored, the link is on the same port`() {
        val link = link(echo())
        val port = link.port
        repeat(10) {
            connect(link).say("hello")
            link.cut()
            link.restore()
            assertEquals(port, link.port)
        }
        assertEquals("again", connect(link).say("again"))
    }

    @Test
    fun `cutting twice or restoring twice is the same as once`() {
        val link = link(echo())
        link.cut()
        link.cut()
        assertFailsWith<ConnectException> { connect(link) }
        link.restore()
        link.restore()
        assertEquals("hello", connect(link).say("hello"))
        assertEquals(2, link.connectivity.snapshot.epoch)
    }

    @Test
    fun `a server's reset reaches the client as a reset`() {
        val port =
            server { socket ->
                socket.getInputStream().read()
                socket.setSoLinger(true, 0)
                socket.close()
            }
        val client = connect(link(port))
        client.getOutputStream().write(1)
        assertFailsWith<SocketException> { client.getInputStream().read() }
    }

    @Test
    fun `without a server a connection dies`() {
        val nobody = ServerSocket(0).use { it.localPort }
        val link = link(nobody)
        assertFailsWith<SocketException> { connect(link).getInputStream().read() }
    }

    @Test
    fun `the phone starts online and hears at once`() {
        val link = link(echo())
        assertEquals(NetworkState.ONLINE, link.connectivity.snapshot.state)
        link.cut()
        assertEquals(NetworkState.OFFLINE, link.connectivity.snapshot.state)
        link.restore()
        assertEquals(NetworkState.ONLINE, link.connectivity.snapshot.state)
        assertEquals(2, link.connectivity.snapshot.epoch)
    }

    @Test
    fun `a word that is to come late comes late`() {
        val link = link(echo())
        val heard = CountDownLatch(1)
        link.connectivity.subscribe { heard.countDown() }
        link.cut(toldAfterMillis = 3_600_000, FakeLink.Outage.RESET)
        assertFailsWith<ConnectException> { connect(link) }
        assertEquals(NetworkState.ONLINE, link.connectivity.snapshot.state)
        link.cut(toldAfterMillis = 1)
        assertTrue(heard.await(10, TimeUnit.SECONDS))
        assertEquals(NetworkState.OFFLINE, link.connectivity.snapshot.state)
    }

    @Test
    fun `a late word that another has overtaken is not told`() {
        val link = link(echo())
        val states = CopyOnWriteArrayList<NetworkState>()
        link.connectivity.subscribe { states += link.connectivity.snapshot.state }
        link.cut(toldAfterMillis = 1)
        link.restore()
        link.cut()
        link.restore(toldAfterMillis = 3_600_000)
        link.cut(toldAfterMillis = 3_600_000)
        assertEquals(NetworkState.OFFLINE, states.last())
        assertEquals(NetworkState.OFFLINE, link.connectivity.snapshot.state)
    }

    @Test
    fun `a word that was overtaken is not told when its time comes`() {
        val link = link(echo())
        // On a machine that stands still in between, the word's time may have come before the next one; then once more.
        do {
            val before = link.connectivity.snapshot
            link.cut(toldAfterMillis = 5)
            link.restore()
        } while (link.connectivity.snapshot != before)
        val heard = CountDownLatch(1)
        link.connectivity.subscribe { heard.countDown() }
        val again = SystemTime.nanos()
        link.cut(toldAfterMillis = 40)
        assertTrue(heard.await(10, TimeUnit.SECONDS))
        assertTrue(link.connectivity.snapshot.since - again >= 40_000_000, "the first cut's word was told")
    }

    @Test
    fun `a phone that is told by others too may be handed over`() {
        val connectivity = ManualConnectivity(concernsLoopback = true)
        val link = FakeLink.to(InetSocketAddress("127.0.0.1", echo()), connectivity)
        Closeable { link.close() }.opened()
        link.cut()
        connectivity.restored()
        assertEquals(NetworkState.ONLINE, link.connectivity.snapshot.state)
    }

    @Test
    fun `after the end connections are reset and refused, whatever is said`() {
        val link = link(echo())
        val client = connect(link)
        client.say("hello")
        link.close()
        link.close()
        assertFailsWith<SocketException> { client.getInputStream().read() }
        link.restore()
        link.cut(toldAfterMillis = 1)
        assertFailsWith<ConnectException> { connect(link) }
        assertEquals(NetworkState.ONLINE, link.connectivity.snapshot.state)
    }

    @Test
    fun `connections that race a cut all die`() {
        val link = link(echo())
        repeat(20) {
            val clients =
                List(4) {
                    thread(isDaemon = true) {
                        assertFailsWith<IOException> {
                            val client = connect(link)
                            while (true) client.say("hello")
                        }
                    }
                }
            link.cut()
            clients.forEach { client ->
                client.join(10_000)
                assertTrue(!client.isAlive, "a connection survived the cut")
            }
            link.restore()
        }
    }
}
