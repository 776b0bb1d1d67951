// How calls end that do not come to their end: cancelled, closed, panicked. And what the machine is left with.
package dev.comeback.client

import dev.comeback.CancelKind
import dev.comeback.RetryEvent
import dev.comeback.StopReason
import dev.comeback.driver.RelayedCall
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import org.junit.jupiter.api.Test
import java.net.InetAddress
import java.net.ServerSocket
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertTrue

class LifeTest {
    @Test
    fun `cancelling the coroutine ends the request at the server within 100 ms`() =
        Server { _, exchange -> exchange.hang() }.use { server ->
            ClientFixture().use { ground ->
                val took =
                    List(20) {
                        soon {
                            val call = launch(Dispatchers.Default) { ground.client.get(server.url) }
                            val exchange = server.next()
                            val cancelled = System.nanoTime()
                            call.cancelAndJoin()
                            assertTrue(exchange.ended.await(10, TimeUnit.SECONDS), "the server still waits")
                            exchange.endedAt - cancelled
                        }
                    }.sorted()
                println("cancel to the server's end of the connection: median ${took[10] / 1_000} µs, most ${took.last() / 1_000} µs")
                assertTrue(took.last() < 100_000_000, "took ${took.last() / 1_000_000} ms")
            }
        }

    @Test
    fun `cancelled at every point where a call waits, it leaves nothing, and the next call works`() {
        // Accepts nothing once its queue is full: a connect there hangs.
        ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { deaf ->
            Server { _, exchange ->
                when (exchange.requestLine.split(" ")[1]) {
                    "/head" -> {
                        exchange.hang()
                    }

                    "/body" -> {
                        exchange.write("HTTP/1.1 200 .\r\ncontent-length: 10\r\n\r\nhalf")
                        exchange.hang()
                    }

                    "/wait" -> {
                        exchange.answer(503)
                    }

                    else -> {
                        exchange.answer(200, "ok")
                    }
                }
            }.use { server ->
                ClientFixture(SLOW).use { ground ->
                    // Before the client is even there.
                    cancelWhen(ground, server.url, server.url) {}
                    cancelWhen(ground, server.url, "http://127.0.0.1:${deaf.localPort}/") { Thread.sleep(20) }
                    cancelWhen(ground, server.url, server.url + "head") { atServer(server, "head") }
                    cancelWhen(ground, server.url, server.url + "body") {
                        atServer(server, "body")
                        Thread.sleep(20)
                    }
                    cancelWhen(
                        ground,
                        server.url,
                        server.url + "wait",
                    ) { eventually("a wait") { ground.events.any { it is RetryEvent.WaitPlanned } } }
                    val random = Random(1)
                    repeat(200) {
                        cancelWhen(ground, server.url, server.url + listOf("", "head", "body", "wait").random(random)) {
                            TimeUnit.MICROSECONDS.sleep(random.nextLong(3_000))
                        }
                    }
                    eventually("no call in flight") { soon { ground.client.calls.inFlightInRust() } == 0 }
                    eventually("no call known") { ground.client.calls.known == 0 }
                }
            }
        }
    }

    private fun atServer(
        server: Server,
        what: String,
    ) {
        while (what !in server.next().requestLine) Unit
    }

    private fun cancelWhen(
        ground: ClientFixture,
        good: String,
        url: String,
        reached: () -> Unit,
    ) = soon {
        val call = launch(Dispatchers.Default, CoroutineStart.UNDISPATCHED) { runCatching { ground.client.get(url) } }
        reached()
        call.cancelAndJoin()
        assertEquals("ok", ground.client.get(good).text())
    }

    @Test
    fun `a cancelled call's last event says that its caller ended it`() =
        Server { _, exchange -> exchange.hang() }.use { server ->
            ClientFixture().use { ground ->
                soon<Unit> {
                    val call = launch(Dispatchers.Default) { ground.client.get(server.url) }
                    server.next()
                    call.cancelAndJoin()
                }
                eventually("a last event") { ground.events.isNotEmpty() }
                assertEquals(StopReason.Cancelled(CancelKind.CALLER), assertIs<RetryEvent.Finished>(ground.events.single()).reason)
            }
        }

    @Test
    fun `closing the client ends calls in flight with a typed error, and later ones too`() =
        Server { _, exchange -> exchange.hang() }.use { server ->
            ClientFixture().use { ground ->
                soon<Unit> {
                    val calls = List(5) { async(Dispatchers.Default) { runCatching { ground.client.get(server.url) } } }
                    val exchanges = List(5) { server.next() }
                    ground.client.close()
                    for (call in calls) {
                        val thrown = assertIs<ClientException.Closed>(call.await().exceptionOrNull())
                        assertEquals(StopReason.Cancelled(CancelKind.CLOSED), thrown.reason)
                    }
                    for (exchange in exchanges) assertTrue(exchange.ended.await(10, TimeUnit.SECONDS))
                    assertFailsWith<ClientException.Closed> { ground.client.get(server.url) }
                }
            }
        }

    @Test
    fun `a call that races close has its answer or a typed error, and never hangs`() =
        Server { _, exchange -> exchange.answer(200, "ok") }.use { server ->
            ClientFixture().use { ground ->
                val answered = AtomicInteger()
                val closed = AtomicInteger()
                val random = Random(7)
                repeat(100) {
                    val client = ComebackClient(ground.comeback)
                    soon {
                        val calls =
                            List(6) {
                                async(Dispatchers.IO) {
                                    while (true) {
                                        try {
                                            assertEquals("ok", client.get(server.url).text())
                                            answered.incrementAndGet()
                                        } catch (_: ClientException.Closed) {
                                            closed.incrementAndGet()
                                            break
                                        }
                                    }
                                }
                            }
                        delay(random.nextLong(0, 20))
                        List(2) { launch(Dispatchers.IO) { client.close() } }
                        calls.awaitAll()
                    }
                }
                println("100 clients closed under 6 callers each: $answered answers, $closed calls ended by close")
                assertEquals(600, closed.get())
                assertTrue(answered.get() > 0)
            }
        }

    @Test
    fun `a panic in a call's task ends that call alone, with a typed error`() =
        Server { _, exchange -> exchange.answer(200, "ok") }.use { server ->
            ClientFixture().use { ground ->
                soon<Unit> {
                    repeat(10) {
                        assertFailsWith<ClientException.Internal> {
                            ground.client.calls.start(RelayedCall(ground.comeback, null)) { client, number -> client.provokePanic(number) }
                        }
                        assertEquals("ok", ground.client.get(server.url).text())
                    }
                }
            }
        }

    /** Callbacks made 180,000 Java threads for others; here there is none. */
    @Test
    fun `10,000 calls make no Java thread but the one that hears`() =
        Server { _, exchange -> exchange.answer(200, "ok") }.use { server ->
            ClientFixture().use { ground ->
                soon<Unit> { List(200) { callInTurn(ground, server.url) }.awaitAll() }
                val (ids, threads) = newestThreadId() to threadNames()
                val began = System.nanoTime()
                soon { List(16) { async(Dispatchers.Default) { repeat(625) { ground.client.get(server.url) } } }.awaitAll() }
                val took = System.nanoTime() - began
                // The test's own server makes a thread for each connection.
                val connections = threadNames().count { it == "server-connection" }
                val grown = newestThreadId() - ids
                println(
                    "10,000 calls: ${took / 10_000 / 1_000} µs each, thread ids grew by $grown, $connections connections are the server's",
                )
                val more = threadNames().filter { it != "server-connection" } - threads.toSet()
                assertTrue(more.all { it.startsWith("DefaultDispatcher") }, "new: $more")
                assertTrue(grown < 100, "thread ids grew by $grown")
                assertEquals(1, threadNames().count { it == "comeback-client" })
            }
        }

    private fun CoroutineScope.callInTurn(
        ground: ClientFixture,
        url: String,
    ) = async(Dispatchers.Default) { ground.client.get(url) }

    private fun threadNames() = Thread.getAllStackTraces().keys.map { it.name }

    /** Every thread that is made, by whomever, takes the next. */
    private fun newestThreadId() = Thread {}.id

    @Test
    fun `an unconfined caller does not go on with the thread that hears for all`() =
        Server { _, exchange -> exchange.answer(200, "ok") }.use { server ->
            ClientFixture().use { ground ->
                soon<Unit> {
                    launch(Dispatchers.Unconfined) {
                        ground.client.get(server.url)
                        assertTrue(Thread.currentThread().name != "comeback-client")
                    }
                }
            }
        }

    @Test
    fun `a client that is closed leaves no thread`() {
        val before = threadNames().count { it == "comeback-client" }
        ClientFixture().use { ground -> soon { runCatching { ground.client.get("http://127.0.0.1:${closedPort()}/") } } }
        eventually("the thread's end") { threadNames().count { it == "comeback-client" } <= before }
        eventually("the workers' end") { nativeThreads() == 0 }
    }

    /** The runtime's workers, by the names the system knows. */
    private fun nativeThreads(): Int =
        java.io.File("/proc/self/task").listFiles().orEmpty().count { task ->
            runCatching { task.resolve("comm").readText() }.getOrDefault("").matches(Regex("comeback-\\d+\\s*"))
        }

    @Test
    fun `a runtime has two workers`() =
        Server { _, exchange -> exchange.answer(200, "ok") }.use { server ->
            eventually("no other client's workers") { nativeThreads() == 0 }
            ClientFixture().use { ground ->
                soon<Unit> { List(50) { callInTurn(ground, server.url) }.awaitAll() }
                assertEquals(2, nativeThreads())
            }
        }
}
