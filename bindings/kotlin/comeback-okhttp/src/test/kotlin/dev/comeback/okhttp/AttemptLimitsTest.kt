// What an attempt may take: the first what the app allows, a later one no more than the time that is left.
package dev.comeback.okhttp

import dev.comeback.Jitter
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import dev.comeback.driver.SystemTime
import dev.comeback.retryReport
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Test
import java.io.InterruptedIOException
import java.net.ServerSocket
import java.time.Duration
import kotlin.test.assertEquals
import kotlin.test.assertIs

internal class AttemptLimitsTest {
    private class Timeouts : Interceptor {
        val seen = ArrayList<List<Int>>()

        override fun intercept(chain: Interceptor.Chain) =
            chain.proceed(chain.request()).also {
                seen += with(chain) { listOf(connectTimeoutMillis(), readTimeoutMillis(), writeTimeoutMillis()) }
            }
    }

    /** Connect, read and write timeouts of each attempt; the first gets a 503. */
    private fun timeoutsOfAttempts(
        policy: RetryPolicy,
        timeoutsOf: OkHttpClient.Builder.() -> Unit,
    ): List<List<Int>> =
        LoopbackFixture().use { ground ->
            val timeouts = Timeouts()
            ground.server.enqueue(status(503))
            val client =
                ground.client(policy) {
                    timeoutsOf()
                    addInterceptor(timeouts)
                }
            assertEquals(200, client.outcomeOf(ground.request()))
            timeouts.seen
        }

    private fun OkHttpClient.Builder.allTimeouts(seconds: Long) {
        connectTimeout(Duration.ofSeconds(seconds))
        readTimeout(Duration.ofSeconds(seconds))
        writeTimeout(Duration.ofSeconds(seconds))
    }

    @Test
    fun `a retry's timeouts shrink to the time left, but the app's shorter ones stay`() {
        val policy = RetryPolicy { jitter = Jitter.NONE }
        val seen =
            timeoutsOfAttempts(policy) {
                allTimeouts(60)
                connectTimeout(Duration.ofSeconds(10))
            }
        assertEquals(listOf(listOf(10_000, 60_000, 60_000), listOf(10_000, 19_000, 19_000)), seen)
    }

    @Test
    fun `no timeout of the app's is one that never ends, so a retry gets one`() {
        val policy = RetryPolicy { jitter = Jitter.NONE }
        assertEquals(listOf(listOf(0, 0, 0), listOf(19_000, 19_000, 19_000)), timeoutsOfAttempts(policy) { allTimeouts(0) })
    }

    @Test
    fun `a retry has two seconds at least`() {
        val policy =
            RetryPolicy {
                jitter = Jitter.NONE
                maxElapsedMillis = 1_500
            }
        assertEquals(listOf(2_000, 2_000, 2_000), timeoutsOfAttempts(policy) { allTimeouts(60) }.last())
    }

    @Test
    fun `attempt_timeout shortens every attempt's timeouts, connect_timeout the connect's`() {
        val policy =
            RetryPolicy {
                attemptTimeoutMillis = 5_000
                connectTimeoutMillis = 1_234
            }
        assertEquals(List(2) { listOf(1_234, 5_000, 5_000) }, timeoutsOfAttempts(policy) { allTimeouts(60) })
    }

    @Test
    fun `a POST that its timeout ends while it connects has sent nothing, and goes again`() =
        LoopbackFixture(clock = SystemTime, driver = Driver.FACTORY).use { ground ->
            ServerSocket(0, 5, LOOPBACK).use { silent ->
                val policy =
                    RetryPolicy {
                        attemptTimeoutMillis = 200
                        baseMillis = 1
                        capMillis = 1
                        maxAttempts = 2
                    }
                val url =
                    ground
                        .url()
                        .newBuilder()
                        .scheme("https")
                        .port(silent.localPort)
                        .build()
                val left = ground.calls(policy).outcomeOf(ground.post { url(url) })
                assertIs<InterruptedIOException>(left)
                assertEquals(StopReason.Attempts, left.retryReport?.reason)
                assertEquals(2, left.retryReport?.counted)
            }
        }
}
