// The client under demonstration as a Ktor client, with the same timeouts and the same eyes on each attempt.
package dev.comeback.demo

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.ktor.ktorPlugin
import dev.comeback.ktor.makeIdempotencyKey
import dev.comeback.testing.FakeLink
import io.ktor.client.HttpClient
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import io.ktor.http.ContentType
import io.ktor.http.contentType
import io.ktor.http.isSuccess
import io.ktor.util.AttributeKey
import kotlinx.coroutines.runBlocking

internal class KtorOrders(
    app: Comeback,
    orders: RetryPolicy,
    link: FakeLink,
) : AutoCloseable {
    private val http =
        HttpClient(OkHttp) {
            engine { preconfigured = OrderClient.common(link).build() }
            install(app.ktorPlugin) {
                policy = orders
                label = { request -> request.attributes.getOrNull(RECORD)?.run { "${tap.id}" } }
            }
            install(attemptRecorder)
        }

    /** Whether the order at [port] was placed. */
    fun place(
        port: Int,
        record: TapRecord,
    ): Boolean =
        runBlocking {
            val response =
                http.post("http://${OrderClient.SHOP}:$port/orders") {
                    attributes.put(RECORD, record)
                    contentType(ContentType.Application.Json)
                    setBody("""{"tap":${record.tap.id}}""")
                    makeIdempotencyKey()
                }
            response.status.isSuccess()
        }

    override fun close() = http.close()

    private companion object {
        val RECORD = AttributeKey<TapRecord>("TapRecord")

        /** Installed after the retry layer, so it runs once for each attempt, as [AttemptRecorder] does. */
        val attemptRecorder =
            createClientPlugin("AttemptRecorder") {
                on(Send) { request ->
                    val record = request.attributes.getOrNull(RECORD) ?: return@on proceed(request)
                    val from = record.millis()
                    try {
                        proceed(request).also { record.attempted(from, it.response.status.isSuccess()) }
                    } catch (problem: Throwable) {
                        record.attempted(from, answered = false)
                        throw problem
                    }
                }
            }
    }
}
