// The code of docs/from-http-request-retry.md, line by line: it compiles, it runs, and the guide has no line that is not here.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import dev.comeback.testing.schedulerTime
import io.ktor.client.HttpClient
import io.ktor.client.engine.mock.MockEngine
import io.ktor.client.engine.mock.respond
import io.ktor.client.plugins.HttpRequestRetry
import io.ktor.client.plugins.HttpRequestRetryEvent
import io.ktor.client.plugins.retry
import io.ktor.client.request.get
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import java.io.File
import java.io.IOException
import kotlin.test.assertEquals
import kotlin.test.assertNull
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.seconds

class FromHttpRequestRetryTest {
    private class SessionExpired : IOException()

    private val logged = ArrayList<String>()

    private fun log(line: String) {
        logged += line
    }

    private fun skip(milliseconds: Long) = check(milliseconds >= 0)

    private val engine get() = MockEngine { respond("fine") }

    private val policy =
        RetryPolicy(base = RetryPolicy.READ) {
            maxAttempts = 4
            base = 1.seconds
            factor = 2.0
            cap = 60.seconds
            jitter = Jitter.EQUAL
            maxElapsed = 45.seconds
            retryStatuses = setOf(429, 500, 502, 503, 504)
            attemptTimeout = 5.seconds
        }

    private val constant =
        RetryPolicy(policy) {
            factor = 1.0
        }

    private fun left(): HttpClient {
        val client =
            HttpClient(engine) {
                install(HttpRequestRetry) {
                    maxRetries = 3
                    retryOnServerErrors(maxRetries = 3)
                    retryOnException(maxRetries = 3, retryOnTimeout = true)
                    retryIf { _, response -> response.status.value == 404 }
                    retryOnExceptionIf { _, cause -> cause !is SessionExpired }
                    exponentialDelay(base = 2.0, baseDelayMs = 1000, maxDelayMs = 60000)
                    constantDelay(millis = 1000, randomizationMs = 1000)
                    delayMillis { retry -> retry * 1000L }
                    exponentialDelay()
                    modifyRequest { request -> request.headers.append("X-Retry", retryCount.toString()) }
                    delay { milliseconds -> skip(milliseconds) }
                }
            }
        client.monitor.subscribe(HttpRequestRetryEvent) { log("again: ${it.retryCount}") }
        return client
    }

    private fun TestScope.right(): HttpClient {
        val app =
            Comeback {
                schedulerTime(testScheduler)
            }
        val client =
            HttpClient(engine) {
                install(app.ktorPlugin) {
                    policy = RetryPolicy.READ
                    classify = { _, response, _ -> if (response?.status?.value == 404) OutcomeClass.TRANSIENT_STATUS else null }
                    classify = { _, _, cause -> if (cause is SessionExpired) OutcomeClass.PERMANENT_FAILURE else null }
                    modifyRequest { request -> request.headers.append("X-Retry", retryCount.toString()) }
                }
            }
        client.monitor.subscribe(ComebackRetryEvent) { log("again: ${it.retryCount}") }
        return client
    }

    @Test
    fun `what stands left and what stands right both answer`() =
        runTest {
            left().use { client ->
                client.get("http://host/") {
                    retry { noRetry() }
                }
                client.get("http://host/") {
                    retry { maxRetries = 1 }
                }
            }
            right().use { client ->
                client.get("http://host/") {
                    retryPolicy(RetryPolicy.OFF)
                }
                val response =
                    client.get("http://host/") {
                        retryPolicy(RetryPolicy.PAYMENT)
                        makeIdempotencyKey()
                        replayableBody()
                    }
                assertNull(
                    response.retryReport,
                )
            }
            assertEquals(4, constant.driverFacts?.maxAttempts)
        }

    @Test
    fun `every line of code in the guide is compiled here`() {
        val root = File(System.getProperty("comeback.vectors")).parentFile.parentFile
        val guide = root.resolve("docs/from-http-request-retry.md").readLines()
        val here =
            root
                .resolve("bindings/kotlin/comeback-ktor/src/test/kotlin/dev/comeback/ktor/FromHttpRequestRetryTest.kt")
                .readLines()
                .map { it.trim().removePrefix("private ").removeSuffix(",") }
                .toSet()
        val cells = guide.filter { it.startsWith("| ") }.flatMap { row -> row.split(" | ").take(2) }
        val inTables = cells.mapNotNull { Regex("^(?:\\| )?`(.*)`$").find(it.trim())?.groupValues?.get(1) }
        val inBlocks =
            guide
                .dropWhile { it != "```kotlin" }
                .drop(1)
                .takeWhile { it != "```" }
                .map(String::trim)
        assertTrue(inTables.size > 20 && inBlocks.size > 8, "$inTables $inBlocks")
        assertEquals(emptyList(), (inTables + inBlocks).filter { it !in here })
    }
}
