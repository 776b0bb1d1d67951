// Whatever hangs, in whichever way a call is made: its caller has the answer in time, and nothing stays behind. One call per cell.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import okhttp3.Call
import okhttp3.Dispatcher
import okhttp3.Dns
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okio.buffer
import okio.source
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import java.io.File
import java.io.IOException
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.net.Socket
import java.nio.channels.SocketChannel
import java.nio.file.Files
import java.util.concurrent.Callable
import java.util.concurrent.CompletableFuture
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit.MILLISECONDS
import kotlin.concurrent.thread
import kotlin.test.assertEquals
import kotlin.time.Duration.Companion.milliseconds

internal class HangMatrixTest {
    private enum class Hang { LOOK_UP, CONNECT, TLS, UPLOAD, HEAD, BODY }

    private enum class End {
        ATTEMPT_TIMEOUT,
        CUT,

        /** Connect, read and write. */
        INACTIVITY,
        CALL_TIMEOUT,
        CANCEL,
    }

    private data class Cell(
        val hang: Hang,
        val driver: Driver,
        val end: End,
    ) {
        override fun toString() = "$hang $driver $end".lowercase()
    }

    /** Cells that hang on, because nothing ends what hangs there. A cell that ends in time must leave this list. */
    private val hangsOn: Set<Cell> = emptySet()

    /** No timeout of the client's is about look-ups. */
    private val cells =
        Hang.entries.flatMap { hang -> Driver.entries.flatMap { driver -> End.entries.map { Cell(hang, driver, it) } } } -
            Driver.entries.map { Cell(Hang.LOOK_UP, it, End.INACTIVITY) }.toSet()

    /** Its queue is full and nobody is accepted, so the system drops each SYN. */
    private class Full : AutoCloseable {
        private val listening = ServerSocket(0, 1, LOOPBACK)
        val port: Int = listening.localPort
        private val fillers =
            List(4) {
                SocketChannel.open().apply {
                    configureBlocking(false)
                    connect(InetSocketAddress(LOOPBACK, port))
                }
            }

        override fun close() {
            fillers.forEach { it.close() }
            listening.close()
        }
    }

    /** Accepts, reads a head where there is one, and then does what the cell is about. */
    private class Silent(
        private val hang: Hang,
    ) : AutoCloseable {
        private val listening =
            ServerSocket().apply {
                // Little of an upload is to fit in.
                receiveBufferSize = 8_192
                bind(InetSocketAddress(LOOPBACK, 0))
            }
        private val accepted = CopyOnWriteArrayList<Socket>()
        val port: Int = listening.localPort

        init {
            thread(isDaemon = true, name = "silent") {
                while (true) {
                    val socket = runCatching { listening.accept() }.getOrNull() ?: return@thread
                    accepted += socket
                    if (hang == Hang.HEAD || hang == Hang.BODY) thread(isDaemon = true, name = "silent") { runCatching { serve(socket) } }
                }
            }
        }

        private fun serve(socket: Socket) {
            val source = socket.source().buffer()
            generateSequence { source.readUtf8Line() }.takeWhile { it.isNotEmpty() }.count()
            if (hang == Hang.BODY) socket.getOutputStream().write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".toByteArray())
        }

        override fun close() {
            listening.close()
            accepted.forEach { it.close() }
        }
    }

    private fun policy(end: End) =
        RetryPolicy {
            readBody = 1_000
            maxAttempts = 1
            if (end == End.ATTEMPT_TIMEOUT) attemptTimeout = LIMIT.milliseconds
            if (end == End.CUT) {
                maxElapsed = LIMIT.milliseconds
                cutAtDeadline = true
            }
        }

    private fun OkHttpClient.Builder.limited(end: End): OkHttpClient.Builder {
        val inactivity = if (end == End.INACTIVITY) LIMIT else 0
        connectTimeout(inactivity, MILLISECONDS).readTimeout(inactivity, MILLISECONDS).writeTimeout(inactivity, MILLISECONDS)
        return callTimeout(if (end == End.CALL_TIMEOUT) LIMIT else 0, MILLISECONDS)
    }

    /** A client without Comeback, and a server that hangs: how late a call's own timeout is on this machine at a moment. */
    private class Control : AutoCloseable {
        private val server = Silent(Hang.HEAD)
        private val client =
            OkHttpClient
                .Builder()
                .dispatcher(Dispatcher().apply { maxRequestsPerHost = 64 })
                .callTimeout(LIMIT, MILLISECONDS)
                .build()

        /** From now on; in milliseconds. */
        fun lateness(): CompletableFuture<Long> {
            val call = client.newCall(Request.Builder().url("http://127.0.0.1:${server.port}/").build())
            val began = System.nanoTime()
            return call.future().handle { _, _ -> ((System.nanoTime() - began) / 1_000_000 - LIMIT).coerceAtLeast(0) }
        }

        override fun close() {
            client.dispatcher.executorService.shutdown()
            client.connectionPool.evictAll()
            server.close()
        }
    }

    /** How many milliseconds after its limit the caller has heard, less what the [control] was late at the same time. */
    private fun Comeback.lateness(
        cell: Cell,
        port: Int,
        control: Control,
    ): Long {
        val release = CountDownLatch(1)
        val lookUp =
            Dns {
                if (cell.hang == Hang.LOOK_UP) release.await()
                listOf(LOOPBACK)
            }
        val builder = OkHttpClient.Builder().limited(cell.end).dns(lookUp)
        if (cell.driver == Driver.INTERCEPTOR) builder.comeback(this, policy(cell.end))
        val client = builder.build()
        val calls: Call.Factory = if (cell.driver == Driver.INTERCEPTOR) client else callFactory(client, policy(cell.end))
        val scheme = if (cell.hang == Hang.TLS) "https" else "http"
        val request = Request.Builder().url("$scheme://shop.test:$port/")
        if (cell.hang == Hang.UPLOAD) request.put(UPLOAD.toRequestBody())
        val call = calls.newCall(request.build())
        try {
            val others = control.lateness()
            val began = System.nanoTime()
            if (cell.end == End.CANCEL) thread { Thread.sleep(LIMIT).also { call.cancel() } }
            if (cell.hang == Hang.LOOK_UP) {
                thread { release.await(HANGS_ON, MILLISECONDS).also { release.countDown() } }
            }
            val outcome = if (cell.driver == Driver.ENQUEUED) call.future().outcome() else call.outcome()
            val took = (System.nanoTime() - began) / 1_000_000
            check(outcome is IOException) { "$cell: $outcome" }
            return took - LIMIT - others.get()
        } finally {
            release.countDown()
            client.dispatcher.executorService.shutdown()
            client.connectionPool.evictAll()
        }
    }

    private fun Call.outcome(): Any =
        try {
            execute().use { it.code }
        } catch (failure: IOException) {
            failure
        }

    @Test
    @Timeout(120)
    fun `in every cell the caller has its answer within 100 ms of its limit, and no thread and no socket stays`() {
        val workers = Executors.newFixedThreadPool(AT_ONCE)
        val lateness = HashMap<Cell, Long>()
        // Once through everything: classes are loaded, and the threads that stay are there.
        Silent(Hang.HEAD).use { server ->
            Control().use { control ->
                Comeback().use { it.lateness(Cell(Hang.HEAD, Driver.ENQUEUED, End.ATTEMPT_TIMEOUT), server.port, control) }
            }
        }
        val threads = threads()
        val sockets = sockets()
        val control = Control()
        val servers = Hang.entries.associateWith { if (it == Hang.CONNECT) Full() else Silent(it) }
        Comeback().use { comeback ->
            fun portOf(cell: Cell) = servers.getValue(cell.hang).let { (it as? Silent)?.port ?: (it as Full).port }
            val tasks = cells.map { cell -> cell to workers.submit(Callable { comeback.lateness(cell, portOf(cell), control) }) }
            for ((cell, task) in tasks) lateness[cell] = task.get()
            // A machine that is busy with other things may hold up one thread and not another: what was late does it again, alone.
            repeat(4) {
                for (cell in cells - hangsOn) {
                    val best = lateness.getValue(cell)
                    if (best > IN_TIME) lateness[cell] = minOf(best, comeback.lateness(cell, portOf(cell), control))
                }
            }
        }
        servers.values.forEach { it.close() }
        control.close()
        workers.shutdown()
        report(lateness)
        val inTime = lateness.filterValues { it <= IN_TIME }.keys
        assertEquals(emptyList(), (cells - inTime - hangsOn).map { "$it: ${lateness[it]} ms" }, "too late")
        assertEquals(emptySet(), hangsOn intersect inTime, "in time, and still in the list of those that hang on")
        awaitNone("threads") { threads() - threads }
        awaitNone("sockets") { (sockets() - sockets).coerceAtLeast(0).let { if (it == 0) emptySet() else setOf("$it more sockets") } }
    }

    private fun report(lateness: Map<Cell, Long>) {
        val sorted = (lateness - hangsOn).values.sorted()
        println(
            "${sorted.size} cells: the answer came ${sorted.first()} to ${sorted.last()} ms later than a client's own timeout, median ${sorted[sorted.size / 2]}",
        )
        println("${sorted.count { it <= IN_TIME }} within $IN_TIME ms; ${hangsOn.size} hang on")
        lateness.entries
            .filter { it.key !in hangsOn }
            .sortedByDescending { it.value }
            .take(
                6,
            ).forEach { println("  ${it.key}: ${it.value} ms") }
    }

    private fun awaitNone(
        what: String,
        left: () -> Set<String>,
    ) {
        val deadline = System.nanoTime() + 10_000_000_000
        while (left().isNotEmpty() && System.nanoTime() < deadline) Thread.sleep(50)
        assertEquals(emptySet(), left(), "$what are left after 10 s")
    }

    /** OkHttp's shared threads wait for more to do, for a minute, under the name of what they did last. */
    private fun threads(): Set<String> =
        Thread
            .getAllStackTraces()
            .filterKeys { it.isAlive && it.name != "OkHttp TaskRunner" && it.name != "Okio Watchdog" && !it.name.startsWith("pool-") }
            .filterValues { stack -> stack.none { "awaitTaskToRun" in it.methodName } }
            .keys
            .map { "${it.name} ${it.id}" }
            .toSet()

    private fun sockets(): Int =
        File("/proc/self/fd").listFiles().orEmpty().count { runCatching { it.toPath().toRealPath() }.isFailure && isSocket(it) }

    private fun isSocket(file: File): Boolean =
        runCatching {
            Files
                .readSymbolicLink(file.toPath())
                .toString()
                .startsWith("socket:")
        }.getOrDefault(false)

    private companion object {
        const val LIMIT = 300L

        /** Milliseconds after the limit, beside what the machine itself is late. */
        const val IN_TIME = 100L

        /** How long what hangs on is let hang. */
        const val HANGS_ON = 3_000L
        const val AT_ONCE = 6
        val UPLOAD = ByteArray(8 shl 20)
    }
}
