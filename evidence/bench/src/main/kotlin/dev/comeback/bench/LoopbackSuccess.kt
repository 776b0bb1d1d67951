// The clients of SuccessPath.kt over loopback, to a server that answers with 200 and nothing.
//
// How to read the table: a round trip takes many microseconds and no two take the same, so every call is compared with its neighbours: all clients
// call in turn, in an order drawn anew each time, and a block's figure for a client is the median of its calls. "ns" is the median of all blocks, "more"
// the median of the blocks' differences to the interceptor that only proceeds; "from" and "to" hold the middle half of them: where they stand on both
// sides of 0 the socket hides the difference. Blocks come from several processes, for the compiler decides differently in each. Bytes are what the
// calling thread allocates, OkHttp's own buffers included.
package dev.comeback.bench

import okhttp3.OkHttpClient
import okhttp3.Request
import java.lang.management.ManagementFactory
import kotlin.random.Random

private val ROWS = listOf("bare", "proceeds", "DEFAULT", "READ", "PAYMENT", "hand-written", "Failsafe", "resilience4j")
private val LEAST = ROWS.indexOf("proceeds")
private val REQUESTS = listOf("get", "post")

private const val PROCESSES = 5
private const val BLOCKS = 20
private const val CALLS = 500
private const val WARM_UP = 5_000

internal fun measureLoopbackSuccess() {
    val table = Table("OkHttp, loopback", "client", "ns", "more", "from", "to", "bytes", "more")
    for (request in REQUESTS) {
        // Of each process: a line of nanoseconds for each block, and one of bytes.
        val processes = List(PROCESSES) { freshProcess(LoopbackSuccess::class.java, request).toList().chunked(ROWS.size) }
        val blocks = processes.flatMap { it.dropLast(1) }
        val bytes = processes.map { it.last() }
        for ((row, name) in ROWS.withIndex()) {
            val more = blocks.figures { it[row] - it[LEAST] }
            table.row(
                request,
                name,
                blocks.figures { it[row] }.quantile(0.5).toString(),
                "%+d".format(more.quantile(0.5)),
                "%+d".format(more.quantile(0.25)),
                "%+d".format(more.quantile(0.75)),
                bytes.figures { it[row] }.quantile(0.5).toString(),
                "%+d".format(bytes.figures { it[row] - it[LEAST] }.quantile(0.5)),
            )
        }
    }
    table.print()
}

private fun List<List<Long>>.figures(of: (List<Long>) -> Long): LongArray = LongArray(size) { of(this[it]) }

internal object LoopbackSuccess {
    private val threads = ManagementFactory.getThreadMXBean() as com.sun.management.ThreadMXBean

    @JvmStatic
    fun main(arguments: Array<String>) {
        val server = LoopbackServer()
        val url = "http://127.0.0.1:${server.port}/"
        val request = if (arguments.single() == "get") getTo(url) else postTo(url)
        val clients = ROWS.map { clientWith(it).build() }
        repeat(WARM_UP) { clients.forEach { nanos(it, request) } }
        val figures = List(BLOCKS) { block(clients, request) } + listOf(clients.map { bytes(it, request) })
        println(figures.flatten().joinToString(" "))
        Runtime.getRuntime().halt(0)
    }

    private fun block(
        clients: List<OkHttpClient>,
        request: Request,
    ): List<Long> {
        val nanos = List(clients.size) { LongArray(CALLS) }
        val order = clients.indices.toMutableList()
        for (call in 0 until CALLS) {
            order.shuffle(Random)
            for (row in order) nanos[row][call] = nanos(clients[row], request)
        }
        return nanos.map { it.quantile(0.5) }
    }

    private fun nanos(
        client: OkHttpClient,
        request: Request,
    ): Long {
        val began = System.nanoTime()
        client.newCall(request).execute().use { check(it.code == 200) }
        return System.nanoTime() - began
    }

    private fun bytes(
        client: OkHttpClient,
        request: Request,
    ): Long {
        val before = threads.currentThreadAllocatedBytes
        repeat(CALLS) { nanos(client, request) }
        return (threads.currentThreadAllocatedBytes - before) / CALLS
    }
}
