// A link that swallows packets, as a tunnel does; on real sockets, with the system's own retransmissions.
package dev.comeback.testing

import java.io.Closeable
import java.io.IOException
import java.net.ConnectException
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.net.Socket
import java.net.SocketException
import java.net.SocketTimeoutException
import java.net.UnknownHostException
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.system.measureTimeMillis
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertTrue

class BlackHoleTest {
    private val opened = CopyOnWriteArrayList<Closeable>()
    private val heard = CopyOnWriteArrayList<String>()
    private val server = ServerSocket(0, 50, InetSocketAddress("127.0.0.1", 0).address).opened()
    private val link = FakeLink.to(server.localPort).also { link -> Closeable { link.close() }.opened() }

    init {
        thread(isDaemon = true) {
            try {
                while (true) server.accept().opened().let { thread(isDaemon = true) { answer(it) } }
            } catch (_: IOException) {
                // The test is over.
            }
        }
    }

    private fun <T : Closeable> T.opened(): T = also { opened += it }

    @AfterTest
    fun closeAll() {
        opened.reversed().forEach { it.close() }
    }

    /** Answers each line with itself, and notes what it heard. */
    private fun answer(socket: Socket) {
        try {
            socket.getInputStream().bufferedReader().forEachLine { line ->
                heard += line
                socket.getOutputStream().write("$line\n".toByteArray())
            }
            heard += "the end"
        } catch (failure: IOException) {
            heard += "$failure"
        }
    }

    private fun socket(): Socket = Socket().opened().apply { soTimeout = 10_000 }

    private fun Socket.connected(timeoutMillis: Int = 10_000): Socket =
        apply { connect(InetSocketAddress("127.0.0.1", link.port), timeoutMillis) }

    private fun Socket.say(line: String) = getOutputStream().write("$line\n".toByteArray())

    private fun Socket.hear(): String {
        val line = StringBuilder()
        while (true) {
            val letter = getInputStream().read()
            if (letter < 0 || letter == '\n'.code) return "$line"
            line.append(letter.toChar())
        }
    }

    private fun Socket.asks(line: String): String {
        say(line)
        return hear()
    }

    private fun <T> later(task: () -> T): CompletableFuture<T> =
        CompletableFuture.supplyAsync(task) {
            thread(isDaemon = true, block = it::run)
        }

    private fun <T> CompletableFuture<T>.soon(): T =
        try {
            get(10, TimeUnit.SECONDS)
        } catch (failure: ExecutionException) {
            throw failure.cause!!
        }

    @Test
    fun `a connect hangs, and goes on with the SYN that meets a live link`() {
        link.cut(toldAfterMillis = HOURS)
        val started = System.nanoTime()
        val client = later { socket().connected() }
        assertFailsWith<SocketTimeoutException> { socket().connected(timeoutMillis = 200) }
        link.restore()
        assertEquals("hello", client.soon().asks("hello"))
        val took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - started)
        assertTrue(took >= 900, "a SYN is sent again after 1 s, and this took $took ms")
    }

    @Test
    fun `however many connect, all hang, and once the link is back there is room for all`() {
        link.cut(toldAfterMillis = HOURS)
        List(50) { later { assertFailsWith<SocketTimeoutException> { socket().connected(timeoutMillis = 300) } } }.forEach { it.soon() }
        link.restore()
        val took = measureTimeMillis { List(20) { later { socket().connected().asks("hello") } }.forEach { it.soon() } }
        assertTrue(took < 900, "a connect waited for its second SYN: $took ms")
        assertEquals(List(20) { "hello" }, heard.toList())
    }

    @Test
    fun `what is said meanwhile is heard when it is said again, on the same connection`() {
        val client = socket().connected()
        client.asks("before")
        link.cut(toldAfterMillis = HOURS)
        client.say("within")
        client.soTimeout = 100
        assertFailsWith<SocketTimeoutException> { client.hear() }
        assertEquals(listOf("before"), heard.toList())
        client.soTimeout = 10_000
        link.restore()
        assertEquals("within", client.hear())
        assertEquals("after", client.asks("after"))
    }

    @Test
    fun `a client that hung up is heard all the same, if the link is back before the phone notices`() {
        val client = socket().connected()
        client.asks("before")
        link.cut(toldAfterMillis = HOURS)
        client.say("within")
        client.close()
        link.restore()
        later { while (heard.size < 3) Thread.sleep(10) }.soon()
        assertEquals(listOf("before", "within", "the end"), heard.toList())
    }

    @Test
    fun `once the phone notices, connections are reset, and what was under way is lost`() {
        val client = socket().connected()
        client.asks("before")
        link.cut(toldAfterMillis = 50)
        client.say("within")
        assertFailsWith<SocketException> { client.hear() }
        assertFailsWith<ConnectException> { socket().connected() }
        link.restore()
        assertEquals("after", socket().connected().asks("after"))
        assertEquals(listOf("before", "after"), heard.toList())
    }

    @Test
    fun `a phone's connect that hangs fails when the loss is noticed, and one that begins later fails at once`() {
        link.cut(toldAfterMillis = 200)
        val took =
            measureTimeMillis {
                val problem = assertFailsWith<ConnectException> { link.socketFactory.createSocket().connected() }
                assertTrue("abort" in problem.message!!, problem.message)
            }
        assertTrue(took in 150..900, "$took ms")
        val problem = assertFailsWith<ConnectException> { link.socketFactory.createSocket().connected() }
        assertTrue("unreachable" in problem.message!!, problem.message)
        link.restore()
        assertEquals(
            "hello",
            link.socketFactory
                .createSocket()
                .opened()
                .connected()
                .asks("hello"),
        )
    }

    @Test
    fun `names are found until the phone notices`() {
        link.cut(toldAfterMillis = HOURS)
        assertEquals("127.0.0.1", link.resolve("example.org").single().hostAddress)
        link.cut()
        assertIs<UnknownHostException>(runCatching { link.resolve("example.org") }.exceptionOrNull())
        link.restore()
        assertEquals(1, link.resolve("example.org").size)
    }

    @Test
    fun `a phone that noticed has no network until it hears of the return`() {
        link.cut()
        link.restore(toldAfterMillis = HOURS)
        assertFailsWith<ConnectException> { socket().connected() }
        link.restore()
        assertEquals("hello", socket().connected().asks("hello"))
    }

    @Test
    fun `a phone that did not notice has its network back at once`() {
        link.cut(toldAfterMillis = HOURS)
        link.restore(toldAfterMillis = HOURS)
        assertEquals("hello", socket().connected(timeoutMillis = 900).asks("hello"))
    }

    @Test
    fun `dead and alive many times over, a connection says everything once and in order`() {
        val client = socket().connected()
        val said = List(200) { "line $it" }
        val listening = later { List(said.size) { client.hear() } }
        for (line in said) {
            client.say(line)
            if (line.endsWith("9")) {
                link.cut(toldAfterMillis = HOURS)
                link.restore()
            }
        }
        assertEquals(said, listening.soon())
        assertEquals(said, heard.toList())
    }

    private companion object {
        const val HOURS = 3_600_000L
    }
}
