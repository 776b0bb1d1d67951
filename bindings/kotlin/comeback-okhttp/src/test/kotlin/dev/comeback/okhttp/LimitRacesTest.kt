// Limits that are reached in the very moment in which their attempt ends: one of the two is first, and no later attempt pays for it.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.retryReport
import okhttp3.Call
import okhttp3.Dispatcher
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.Response
import okhttp3.ResponseBody.Companion.toResponseBody
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.Executors
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.random.Random
import kotlin.test.assertEquals
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

@ParameterizedClass
@EnumSource(Driver::class)
internal class LimitRacesTest(
    private val driver: Driver,
) {
    private class Tries {
        @Volatile
        var made = 0
    }

    /** An attempt takes about as long as its limit allows. */
    private fun wire(random: Random) =
        Interceptor { chain ->
            val tries = chain.call().request().tag(Tries::class.java)!!
            val isFirst = ++tries.made == 1
            val millis = synchronized(random) { random.nextLong(95, 150) }
            if (isFirst) Thread.sleep(millis)
            if (!isFirst && chain.call().isCanceled()) cancelledLater.incrementAndGet()
            Response
                .Builder()
                .request(chain.request())
                .protocol(Protocol.HTTP_1_1)
                .code(if (isFirst && millis % 2 == 0L) 503 else 200)
                .message("")
                .body("fine".toResponseBody())
                .build()
        }

    private val cancelledLater = AtomicInteger()

    private fun race(policy: RetryPolicy): Map<Call, Any> {
        val ended = ConcurrentLinkedQueue<Pair<Call, Any>>()
        val threads = Executors.newFixedThreadPool(THREADS)
        val dispatcher = Dispatcher(Executors.newCachedThreadPool()).apply { maxRequestsPerHost = THREADS }
        Comeback().use { comeback ->
            val wire = wire(Random(7))
            val builder = OkHttpClient.Builder().dispatcher(dispatcher)
            val calls: Call.Factory =
                if (driver == Driver.INTERCEPTOR) {
                    builder.comeback(comeback, policy).addInterceptor(wire).build()
                } else {
                    comeback.callFactory(builder.addInterceptor(wire).build(), policy)
                }
            repeat(CALLS) {
                threads.execute {
                    val call =
                        calls.newCall(
                            Request
                                .Builder()
                                .url("http://127.0.0.1/")
                                .tag(Tries::class.java, Tries())
                                .build(),
                        )
                    val answer = if (driver == Driver.ENQUEUED) call.future().outcome() else call.outcome()
                    ended += call to answer
                }
            }
            threads.shutdown()
            assertTrue(threads.awaitTermination(60, TimeUnit.SECONDS))
            // A limit that was reached late would cancel now.
            Thread.sleep(60)
        }
        dispatcher.executorService.shutdown()
        assertEquals(CALLS, ended.size)
        return ended.toMap()
    }

    private fun Call.outcome(): Any =
        try {
            execute().use { it.code }
        } catch (failure: IOException) {
            failure
        }

    @Test
    @Timeout(90)
    fun `a cut that comes as the answer does ends the call or leaves it alone`() {
        val outcomes =
            race(
                RetryPolicy {
                    maxElapsed = 120.milliseconds
                    cutAtDeadline = true
                    base = 1.milliseconds
                    cap = 1.milliseconds
                },
            )
        for ((call, outcome) in outcomes) {
            if (outcome is Int) {
                assertTrue(!call.isCanceled(), "$outcome, and cancelled all the same")
            } else {
                assertEquals(StopReason.Elapsed, (outcome as IOException).retryReport?.reason)
            }
        }
        assertEquals(0, cancelledLater.get())
        assertTrue(outcomes.values.any { it is Int } && outcomes.values.any { it is IOException }, "no race")
    }

    @Test
    @Timeout(90)
    fun `an attempt's limit that comes as the attempt ends does not reach the next attempt`() {
        if (driver == Driver.INTERCEPTOR) return
        val outcomes =
            race(
                RetryPolicy {
                    attemptTimeout = 100.milliseconds
                    base = 1.milliseconds
                    cap = 1.milliseconds
                },
            )
        assertEquals(setOf<Any>(200), outcomes.values.toSet())
        assertTrue(outcomes.keys.none { it.isCanceled() })
        assertEquals(0, cancelledLater.get())
    }

    private companion object {
        const val THREADS = 8
        const val CALLS = 160
    }
}
