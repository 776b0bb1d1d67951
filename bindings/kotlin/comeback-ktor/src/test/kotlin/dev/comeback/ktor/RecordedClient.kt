// A client with the plugin, over any engine, and everything that its listener has heard.
package dev.comeback.ktor

import dev.comeback.Comeback
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import io.ktor.client.HttpClient
import io.ktor.client.HttpClientConfig
import io.ktor.client.engine.HttpClientEngineFactory
import java.util.concurrent.CopyOnWriteArrayList

/** [after] configures what is further in than the plugin; [onFailure] runs after each attempt that failed. */
internal open class RecordedClient(
    engine: HttpClientEngineFactory<*>,
    policy: RetryPolicy,
    after: HttpClientConfig<*>.() -> Unit,
    configure: ComebackRetryConfig.() -> Unit = {},
    onFailure: () -> Unit = {},
) : AutoCloseable {
    val events = CopyOnWriteArrayList<RetryEvent>()
    val comeback =
        Comeback {
            listener =
                RetryListener {
                    events += it
                    if (it is RetryEvent.AttemptFailed) onFailure()
                }
        }
    val client =
        HttpClient(engine) {
            install(this@RecordedClient.comeback.ktorPlugin) {
                this.policy = policy
                configure()
            }
            after()
        }

    val failed: List<RetryEvent.AttemptFailed> get() = events.filterIsInstance<RetryEvent.AttemptFailed>()

    override fun close() {
        client.close()
        comeback.close()
    }
}
