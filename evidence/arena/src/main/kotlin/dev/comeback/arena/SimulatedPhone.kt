// The phone that a client runs on: virtual time, the link, and what the system says about it.
package dev.comeback.arena

import dev.comeback.Comeback
import dev.comeback.Connectivity
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.NetworkSnapshot
import dev.comeback.testing.SchedulerTime
import dev.failsafe.spi.Scheduler
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.mock.MockEngine
import io.ktor.client.engine.mock.MockEngineConfig
import io.ktor.client.engine.mock.respond
import io.ktor.client.request.get
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.cancel
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.StandardTestDispatcher
import kotlinx.coroutines.test.TestCoroutineScheduler
import java.util.SplittableRandom
import java.util.concurrent.Callable
import java.util.concurrent.CompletableFuture
import java.util.concurrent.Delayed
import java.util.concurrent.ScheduledFuture
import java.util.concurrent.TimeUnit

@OptIn(ExperimentalCoroutinesApi::class, InternalComebackApi::class)
internal class SimulatedPhone(
    private val link: Link,
    private val taps: List<Tap>,
    seed: Long,
) {
    private val scheduler = TestCoroutineScheduler()
    private val dispatcher = StandardTestDispatcher(scheduler)
    private val seeds = SplittableRandom(seed)
    val scope = CoroutineScope(dispatcher + SupervisorJob())

    private fun now(): Long = scheduler.currentTime

    /** Lets all taps happen, each in a coroutine of its own, until nothing is left to do. */
    fun run(client: Client) {
        val call = client.setUp(this)
        for (tap in taps) {
            scope.launch {
                delay(tap.at)
                val success = runCatching { call(tap) }.isSuccess
                tap.ended(now(), success)
            }
        }
        scheduler.advanceUntilIdle()
        scope.cancel()
        scheduler.advanceUntilIdle()
    }

    suspend fun attempt(tap: Tap) = tap.attempt(link, ::now)

    fun isOffline(): Boolean = link.isKnownOffline(now())

    suspend fun untilOnline() {
        link.offlineUntil(now())?.let { delay(it - now()) }
    }

    fun ktor(configure: HttpClientConfig<MockEngineConfig>.() -> Unit): HttpClient =
        HttpClient(MockEngine) {
            engine {
                dispatcher = this@SimulatedPhone.dispatcher
                addHandler { request ->
                    attempt(
                        taps[
                            request.url.encodedPath
                                .removePrefix("/")
                                .toInt(),
                        ],
                    )
                    respond("")
                }
            }
            configure()
        }

    suspend fun get(
        http: HttpClient,
        tap: Tap,
    ) {
        http.get("http://arena/${tap.number}")
    }

    fun comeback(signal: Signal): Comeback {
        val time = SchedulerTime(scheduler)
        val told = ManualConnectivity(time, concernsLoopback = true)
        if (signal != Signal.NONE) scope.launch { tell(told, signal) }
        return Comeback {
            this.time = time
            connectivity = if (signal == Signal.NO_PATH) OnePath(told) else told
            seeds = this@SimulatedPhone.seeds::nextLong
        }
    }

    private suspend fun tell(
        connectivity: ManualConnectivity,
        signal: Signal,
    ) {
        var handle = 1L
        connectivity.available(handle)
        for (offline in link.knownOffline) {
            if (signal != Signal.RETURNS) {
                delay(offline.from - now())
                connectivity.lost(handle)
            }
            delay(offline.until - now())
            connectivity.available(++handle)
        }
    }
}

/** Hides that old connections are dead. */
private class OnePath(
    private val told: Connectivity,
) : Connectivity by told {
    override val snapshot: NetworkSnapshot get() = told.snapshot.let { NetworkSnapshot(it.state, it.since, it.epoch, path = 0) }
}

/** Failsafe's scheduler on the arena's time. */
internal class VirtualScheduler(
    private val scope: CoroutineScope,
) : Scheduler {
    override fun schedule(
        callable: Callable<*>,
        delay: Long,
        unit: TimeUnit,
    ): ScheduledFuture<*> {
        val future = VirtualFuture()
        val job =
            scope.launch {
                delay(unit.toMillis(delay))
                runCatching { callable.call() }.onSuccess(future::complete).onFailure(future::completeExceptionally)
            }
        future.whenComplete { _, _ -> if (future.isCancelled) job.cancel() }
        return future
    }

    private class VirtualFuture :
        CompletableFuture<Any?>(),
        ScheduledFuture<Any?> {
        override fun getDelay(unit: TimeUnit): Long = 0

        override fun compareTo(other: Delayed): Int = 0
    }
}
