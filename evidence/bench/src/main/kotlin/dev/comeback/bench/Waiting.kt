// What calls of the factory cost while they wait: threads, memory, and the way back.
//
// How to read the table: "threads" is how many more the process has than before the first call; "KB a call" is what the heap grew by for each waiting
// call, all of it: request, callback, the call itself and what Comeback keeps; "told" is how long `restored()` took, and "cpu" what that took of a
// processor, which no other program changes much; "first" and "last" are from there to the first and to the last call's next attempt, which the
// dispatcher lets begin 64 at a time; in milliseconds, each the least of its rounds. No socket is involved.
package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryPolicy
import dev.comeback.okhttp.callFactory
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import java.io.IOException
import java.net.SocketException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicLong
import kotlin.time.Duration.Companion.minutes

private const val ROUNDS = 5
private const val KB = 1024.0

internal fun measureWaiting() {
    val table = Table("waiting calls", "rounds", "threads", "KB a call", "told", "cpu", "first", "last")
    for (calls in listOf(1, 100, 10_000)) {
        wait(calls)
        val rounds = List(ROUNDS) { wait(calls) }
        table.row(
            "%,d".format(calls),
            ROUNDS.toString(),
            rounds.maxOf { it.threads }.toString(),
            if (calls < 1000) "" else "%.1f".format(rounds.minOf { it.bytes } / calls / KB),
            millis(rounds.minOf { it.told }),
            millis(rounds.minOf { it.used }),
            millis(rounds.minOf { it.first }),
            millis(rounds.minOf { it.last }),
        )
    }
    table.print()
}

private class Waited(
    val threads: Int,
    val bytes: Long,
    val told: Long,
    val used: Long,
    val first: Long,
    val last: Long,
)

private fun wait(count: Int): Waited {
    val connectivity = ManualConnectivity(concernsLoopback = true).apply { available() }
    val policy =
        RetryPolicy {
            base = 10.minutes
            cap = 10.minutes
            maxElapsed = 60.minutes
            jitter = Jitter.NONE
        }
    return Comeback { this.connectivity = connectivity }.use { comeback ->
        val over = CountDownLatch(count)
        val first = AtomicLong(Long.MAX_VALUE)
        val last = AtomicLong()
        val isBack = AtomicBoolean()
        val wire =
            Interceptor { chain ->
                if (!isBack.get()) throw SocketException("Connection reset")
                val now = System.nanoTime()
                first.accumulateAndGet(now, ::minOf)
                last.accumulateAndGet(now, ::maxOf)
                answer(chain.request())
            }
        val client = OkHttpClient.Builder().addInterceptor(wire).build()
        val calls = comeback.callFactory(client, policy)
        val callback =
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) {
                    response.close()
                    over.countDown()
                }

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) = over.countDown()
            }
        // Threads and classes that any call needs.
        val threadsBefore = Thread.activeCount()
        val heapBefore = usedHeap()
        val waiting = List(count) { calls.newCall(Request.Builder().url("http://localhost/").build()).apply { enqueue(callback) } }
        while (client.dispatcher.runningCallsCount() + client.dispatcher.queuedCallsCount() > 0) Thread.sleep(1)
        // The dispatcher's threads linger for a minute; none of them waits for anything of ours.
        client.dispatcher.executorService.let { (it as ThreadPoolExecutor).setKeepAliveTime(1, TimeUnit.MILLISECONDS) }
        Thread.sleep(100)
        val threads = Thread.activeCount() - threadsBefore
        val bytes = usedHeap() - heapBefore
        isBack.set(true)
        val usedBefore = THREADS.currentThreadCpuTime
        val restored = System.nanoTime()
        connectivity.restored()
        val told = System.nanoTime() - restored
        val used = THREADS.currentThreadCpuTime - usedBefore
        over.await()
        check(waiting.all { it.isExecuted() })
        client.dispatcher.executorService.shutdown()
        Waited(threads, bytes, told, used, first.get() - restored, last.get() - restored)
    }
}

private fun usedHeap(): Long {
    collectGarbage()
    val runtime = Runtime.getRuntime()
    return runtime.totalMemory() - runtime.freeMemory()
}
