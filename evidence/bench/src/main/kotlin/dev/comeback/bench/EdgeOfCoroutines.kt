// How long it is from the network's return to the next attempt of waiting coroutines: from `restored()` being called to each block of `retry { }`
// running again. They share two threads or as many as there are processors, so the last of 10,000 runs when all others have run.
//
// The columns are those of Edge.kt, but "cpu" is what telling took of a processor; "no call" is a coroutine that suspends
// until the network's return and does nothing else.
package dev.comeback.bench

import dev.comeback.Comeback
import dev.comeback.ManualConnectivity
import dev.comeback.NetworkState
import dev.comeback.RetryPolicy
import dev.comeback.coroutines.retry
import dev.comeback.coroutines.snapshots
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import java.net.SocketException
import java.util.concurrent.CountDownLatch

private const val WARM_UP = 5

/** After the last attempt has failed its call only has to be decided. */
private const val SETTLING_MILLIS = 50L

internal fun measureEdgeOfCoroutines() {
    val table = Table("waiting calls", "coroutines", "rounds", "p50 ms", "p99", "max", "best", "told", "cpu")
    for ((coroutines, rounds) in listOf(1 to 200, 100 to 50, 10_000 to 10)) {
        table.add("parked, retry", coroutines, rounds) { comeback, failed, again ->
            var isFirst = true
            comeback.retry(RetryPolicy.READ) {
                if (isFirst) {
                    isFirst = false
                    failed.countDown()
                    throw SocketException("Connection reset")
                }
                again()
            }
        }
        table.add("no call at all", coroutines, rounds) { comeback, failed, again ->
            failed.countDown()
            comeback.connectivity.snapshots.first { it.state != NetworkState.OFFLINE }
            again()
        }
    }
    table.print()
}

private fun Table.add(
    name: String,
    coroutines: Int,
    rounds: Int,
    call: suspend (Comeback, failed: CountDownLatch, again: () -> Unit) -> Unit,
) {
    val network = ManualConnectivity(concernsLoopback = true)
    Comeback { connectivity = network }.use { comeback ->
        val told = LongArray(rounds)
        val used = LongArray(rounds)
        val lags =
            List(WARM_UP + rounds) { round ->
                network.available()
                network.lost()
                collectGarbage()
                val failed = CountDownLatch(coroutines)
                val wokenAt = LongArray(coroutines)
                val calls =
                    List(coroutines) { index ->
                        CoroutineScope(Dispatchers.Default).launch { call(comeback, failed) { wokenAt[index] = System.nanoTime() } }
                    }
                failed.await()
                Thread.sleep(SETTLING_MILLIS)
                val usedBefore = THREADS.currentThreadCpuTime
                val restored = System.nanoTime()
                network.restored()
                if (round >= WARM_UP) {
                    told[round - WARM_UP] = System.nanoTime() - restored
                    used[round - WARM_UP] = THREADS.currentThreadCpuTime - usedBefore
                }
                runBlocking { calls.joinAll() }
                LongArray(coroutines) { wokenAt[it] - restored }
            }.drop(WARM_UP)
        val all = lags.flatMap { it.asList() }.toLongArray()
        row(
            name,
            coroutines.toString(),
            rounds.toString(),
            millis(all.quantile(0.5)),
            millis(all.quantile(0.99)),
            millis(all.max()),
            millis(lags.minOf { it.quantile(0.99) }),
            millis(told.quantile(0.5)),
            millis(used.quantile(0.5)),
        )
    }
}
