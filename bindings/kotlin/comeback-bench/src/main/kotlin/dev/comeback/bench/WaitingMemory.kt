// What a call keeps of the heap while it waits: in the interceptor, in the call factory, in `retry { }`; and what a bare thread and coroutine keep.
//
// How to read the table: "bytes a call" is what the heap grew by for each waiting call, everything in it counted: request, client's call, callback and
// what Comeback keeps; the least of the rounds. A thread's stack is not on the heap: an interceptor's call holds one, 1 MB of address space on Linux.
package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
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
import kotlin.time.Duration.Companion.minutes

private const val ROUNDS = 4
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
                            app.retry(POLICY) {
                                begun()
                                throw SocketException("Connection reset")
                            }
                        }
                    }
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
    var threads = 0
    val bytes =
        List(ROUNDS) {
            val begun = AtomicInteger()
            val heap = heapInUse()
            val threadsBefore = Thread.activeCount()
            val end = begin { begun.incrementAndGet() }
            while (begun.get() < calls) Thread.sleep(1)
            // From the last attempt's failure to its sleep, and for the threads of pools to go.
            Thread.sleep(1_500)
            threads = Thread.activeCount() - threadsBefore
            (heapInUse() - heap).also {
                end()
                Thread.sleep(300)
            }
        }
    row(name, grouped(calls.toLong()), grouped(bytes.min() / calls), threads.toString())
}

private fun withComeback(begin: (Comeback) -> () -> Unit): () -> Unit {
    val app = Comeback { connectivity = ManualConnectivity().apply { available() } }
    val end = begin(app)
    return {
        end()
        app.close()
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

private fun resets(begun: () -> Unit) =
    Interceptor {
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

private fun heapInUse(): Long {
    repeat(3) { collectGarbage() }
    val runtime = Runtime.getRuntime()
    return runtime.totalMemory() - runtime.freeMemory()
}
