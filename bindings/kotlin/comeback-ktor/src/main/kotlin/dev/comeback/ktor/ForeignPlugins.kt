// Which plugins of a client are the app's own: those may send a request through another client, which nobody here hears.
package dev.comeback.ktor

import io.ktor.client.HttpClient
import io.ktor.util.AttributeKey
import io.ktor.util.Attributes

/** Whether [client] has plugins that are neither Ktor's nor Comeback's. */
internal fun hasForeignPlugins(client: HttpClient): Boolean {
    val registry = client.attributes.allKeys.firstOrNull { it.name == REGISTRY } ?: return true

    @Suppress("UNCHECKED_CAST")
    val installed = client.attributes[registry as AttributeKey<Any>] as? Attributes ?: return true
    return installed.allKeys.any { it.name !in KTORS_OWN }
}

/** Where Ktor keeps the plugins of a client. */
private const val REGISTRY = "ApplicationPluginRegistry"

/** The names of Ktor's plugins, by which they are registered, and Comeback's. They send a request through no other client. */
private val KTORS_OWN =
    setOf(
        "Auth",
        "BodyProgress",
        "CallId",
        "Comeback",
        "ComebackRetry",
        "ContentEncoding",
        "ContentNegotiation",
        "DataConversion",
        "DefaultRequest",
        "DoubleReceivePlugin",
        "ExpectSuccess",
        "HttpCache",
        "HttpCallValidator",
        "HttpCookies",
        "HttpEncoding",
        "HttpPlainText",
        "HttpRedirect",
        "HttpRequestLifecycle",
        "HttpResponseValidator",
        "HttpSend",
        "HttpTimeout",
        "Logging",
        "ClientLogging",
        "RequestLifecycle",
        "ResponseObserver",
        "RetryFeature",
        "SaveBody",
        "SSE",
        "UserAgent",
        "Websocket",
    )
