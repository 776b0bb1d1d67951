// What a call keeps of the heap while it waits: in the interceptor, the call factory, the Ktor plugin and `retry { }`; and what a bare thread, a bare
// coroutine and Ktor's own plugin keep.
//
// How to read the table: "bytes a call" is what the heap grew by for each waiting call, everything in it counted: request, client's call, callback and
// what Comeback keeps; the median of five rounds. A thread's stack is not on the heap: an interceptor's call holds one, 1 MB of address space on Linux.
package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import dev.comeback.ktor.ktorPlugin
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.plugins.HttpRequestRetry
import io.ktor.client.request.get
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.cancel
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import java.io.IOException
import java.net.SocketException
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread
import kotlin.math.abs
import kotlin.time.Duration.Companion.minutes

private const val ROUNDS = 5
private const val MANY = 10_000
private const val FEW = 200

internal fun measureWaitingMemory() {
    val table = Table("waiting", "calls", "bytes a call", "threads")
    table.row("coroutine in delay()", MANY) { begun -> inScope { repeat(MANY) { launch { begun().also { delay(10.minutes) } } } } }
    table.row("coroutine in retry { }", MANY) { begun ->
        withComeback { app ->
            inScope {
                repeat(MANY) {
                    launch {
                        runCatching {
                            app.retry(POLICY) { reset(begun) }
                        }
                    }
                }
            }
        }
    }
    table.row("call in Ktor's HttpRequestRetry", MANY) { begun ->
        callsOfKtor(begun) {
            install(HttpRequestRetry) {
                retryOnException(maxRetries = 3)
                delayMillis { 600_000 }
            }
        }
    }
    table.row("call waiting in the Ktor plugin", MANY) { begun ->
        withComeback { app ->
            callsOfKtor(begun) {
                install(app.ktorPlugin) {
                    policy = POLICY
                }
            }
        }
    }
    table.row("call of the factory", MANY) { begun ->
        withComeback { app ->
            val client = OkHttpClient.Builder().addInterceptor(resets(begun)).build()
            val calls = app.callFactory(client, POLICY)
            // Its threads linger for a minute; none of them waits for anything of ours.
            (client.dispatcher.executorService as ThreadPoolExecutor).setKeepAliveTime(1, TimeUnit.MILLISECONDS)
            val waiting = List(MANY) { calls.newCall(request()).apply { enqueue(Ignore) } }
            return@withComeback { waiting.forEach { it.cancel() } }
        }
    }
    table.row("thread in sleep()", FEW) { begun ->
        val threads =
            List(FEW) {
                thread {
                    begun()
                    runCatching { Thread.sleep(600_000) }
                }
            }
        return@row { threads.forEach { it.interrupt() } }
    }
    table.row("thread in the interceptor", FEW) { begun ->
        withComeback { app ->
            val client =
                OkHttpClient
                    .Builder()
                    .comeback(app, POLICY)
                    .addInterceptor(resets(begun))
                    .build()
            val waiting = List(FEW) { client.newCall(request()) }
            waiting.forEach { call -> thread { runCatching { call.execute() } } }
            return@withComeback { waiting.forEach { it.cancel() } }
        }
    }
    table.print()
}

/** [begin] begins the calls, each of which says so when it is about to wait, and returns what ends them. */
private fun Table.row(
    name: String,
    calls: Int,
    begin: (() -> Unit) -> () -> Unit,
) {
    val bytes = LongArray(ROUNDS)
    val threads = LongArray(ROUNDS)
    for (round in 0 until ROUNDS) {
        val begun = AtomicInteger()
        val heapBefore = settledHeap()
        val threadsBefore = Thread.activeCount()
        val end = begin { begun.incrementAndGet() }
        while (begun.get() < calls) Thread.sleep(1)
        bytes[round] = settledHeap() - heapBefore
        // A pool's thread that went meanwhile is nobody's.
        threads[round] = (Thread.activeCount() - threadsBefore).coerceAtLeast(0).toLong()
        end()
    }
    row(name, grouped(calls.toLong()), grouped(bytes.quantile(0.5) / calls), threads.quantile(0.5).toString())
}

private fun withComeback(begin: (Comeback) -> () -> Unit): () -> Unit {
    val app = Comeback { connectivity = ManualConnectivity(concernsLoopback = true).apply { available() } }
    val end = begin(app)
    return {
        end()
        app.close()
    }
}

private fun callsOfKtor(
    begun: () -> Unit,
    configure: HttpClientConfig<*>.() -> Unit,
): () -> Unit {
    val client = HttpClient(AnsweringEngine { reset(begun) }, configure)
    val end = inScope { repeat(MANY) { launch { runCatching { client.get("http://localhost/") } } } }
    return {
        end()
        client.close()
    }
}

private fun inScope(begin: CoroutineScope.() -> Unit): () -> Unit {
    val scope = CoroutineScope(Dispatchers.Default + SupervisorJob())
    scope.begin()
    return { scope.cancel() }
}

private val POLICY by lazy {
    RetryPolicy {
        base = 10.minutes
        cap = 10.minutes
        maxElapsed = 60.minutes
        jitter = Jitter.NONE
    }
}

private fun request() = Request.Builder().url("http://localhost/").build()

private fun resets(begun: () -> Unit) = Interceptor { reset(begun) }

private fun reset(begun: () -> Unit): Nothing {
    begun()
    throw SocketException("Connection reset")
}

private object Ignore : Callback {
    override fun onResponse(
        call: Call,
        response: Response,
    ) = response.close()

    override fun onFailure(
        call: Call,
        e: IOException,
    ) = Unit
}

/** Once nothing comes or goes any more: calls still on their way to sleep, pools' threads that end, what an earlier round has left. */
private fun settledHeap(): Long {
    var before = heapInUse()
    repeat(20) {
        Thread.sleep(500)
        val now = heapInUse()
        if (abs(now - before) < 8 * 1024) return now
        before = now
    }
    return before
}

private fun heapInUse(): Long {
    repeat(3) { collectGarbage() }
    val runtime = Runtime.getRuntime()
    return runtime.totalMemory() - runtime.freeMemory()
}
