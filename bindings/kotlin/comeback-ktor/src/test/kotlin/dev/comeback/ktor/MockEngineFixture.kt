// What the tests of rules use: a mocked engine in the time of runTest, and everything that was sent and heard.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.testing.SchedulerTime
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.mock.MockEngine
import io.ktor.client.engine.mock.MockEngineConfig
import io.ktor.client.engine.mock.MockRequestHandleScope
import io.ktor.client.engine.mock.respond
import io.ktor.client.request.HttpRequestData
import io.ktor.client.request.HttpResponseData
import io.ktor.http.HttpStatusCode
import io.ktor.http.headersOf
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.test.StandardTestDispatcher
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.currentTime
import java.util.concurrent.CopyOnWriteArrayList

@OptIn(ExperimentalCoroutinesApi::class)
internal class MockEngineFixture(
    private val test: TestScope,
    isHeard: Boolean = true,
) {
    val clock = SchedulerTime(test.testScheduler)
    val connectivity = ManualConnectivity(clock, concernsLoopback = true)
    val events = CopyOnWriteArrayList<RetryEvent>()
    val comeback =
        Comeback {
            time = clock
            connectivity = this@MockEngineFixture.connectivity
            if (isHeard) listener = RetryListener { events += it }
        }

    /** What reached the engine, and when in virtual milliseconds. */
    val sent = ArrayList<HttpRequestData>()
    val sentAt = ArrayList<Long>()

    val finished: List<RetryEvent.Finished> get() = events.filterIsInstance<RetryEvent.Finished>()

    inline fun <reified T : RetryEvent> heard(): List<T> = events.filterIsInstance<T>()

    /** Answers request [number], from 1. */
    fun client(
        policy: RetryPolicy = STEADY,
        configure: ComebackRetryConfig.() -> Unit = {},
        before: HttpClientConfig<*>.() -> Unit = {},
        after: HttpClientConfig<*>.() -> Unit = {},
        answer: suspend MockRequestHandleScope.(number: Int) -> HttpResponseData,
    ): HttpClient {
        val engine =
            MockEngine(
                MockEngineConfig().apply {
                    dispatcher = StandardTestDispatcher(test.testScheduler)
                    addHandler { request ->
                        sent += request
                        sentAt += test.currentTime
                        answer(sent.size)
                    }
                },
            )
        return HttpClient(engine) {
            before()
            install(this@MockEngineFixture.comeback.ktorPlugin) {
                this.policy = policy
                configure()
            }
            after()
        }
    }

    companion object {
        /** Waits 1, 2, 4 s. */
        val STEADY = RetryPolicy { jitter = Jitter.NONE }
        const val KEY = "Idempotency-Key"
    }
}

internal fun MockRequestHandleScope.status(
    code: Int,
    vararg headers: Pair<String, String>,
): HttpResponseData =
    respond(
        "",
        HttpStatusCode.fromValue(code),
        headersOf(
            *headers
                .map { (name, value) ->
                    name to listOf(value)
                }.toTypedArray(),
        ),
    )
