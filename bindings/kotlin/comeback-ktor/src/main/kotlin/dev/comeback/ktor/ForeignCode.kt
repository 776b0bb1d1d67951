// Whether the app's own code runs in a client further in than Comeback: it may send a request through another client, which nobody here hears.
package dev.comeback.ktor

import dev.comeback.driver.orNull
import io.ktor.client.HttpClient
import io.ktor.client.plugins.HttpSend
import io.ktor.client.plugins.plugin
import io.ktor.util.AttributeKey
import io.ktor.util.Attributes
import io.ktor.utils.io.InternalAPI
import java.lang.reflect.Modifier

/** Made just before Comeback's own interceptor joins those of `HttpSend`. What cannot be read counts as the app's. */
internal class ForeignCode(
    private val client: HttpClient,
) {
    /** From the outermost to the innermost. Null: they cannot be read. */
    private val sendInterceptors: List<*>? = orNull { INTERCEPTORS?.get(client.plugin(HttpSend)) as List<*>? }

    /** Of Comeback's own among them. */
    private val place = sendInterceptors?.size

    @Volatile
    private var isKnown: Boolean? = null

    /** As it was when it was last looked for. */
    val wasThere: Boolean get() = isKnown ?: isThere()

    /** Looked for anew each time, at a failure: an app may add interceptors to a client that it uses already. */
    fun isThere(): Boolean = isKnown == true || (hasForeignPlugins(client) || orNull(::isFurtherIn) ?: true).also { isKnown = it }

    @OptIn(InternalAPI::class)
    private fun isFurtherIn(): Boolean {
        val list = sendInterceptors ?: return true
        val furtherIn = ArrayList(list).drop(checkNotNull(place) + 1)
        val pipeline = client.sendPipeline
        return furtherIn.any(::isForeign) || pipeline.items.any { it !== ENGINE && pipeline.interceptorsForPhase(it).any(::isForeign) }
    }

    /** Whether [interceptor] is not Ktor's, or is one that passes the request to a function that is not. Plugins of the app's are known by their names. */
    private fun isForeign(interceptor: Any?): Boolean {
        if (interceptor == null || !interceptor.javaClass.name.startsWith(KTOR)) return true
        return interceptor.javaClass.declaredFields.any { field ->
            Function::class.java.isAssignableFrom(field.type) && !Modifier.isStatic(field.modifiers) &&
                field.apply { isAccessible = true }.get(interceptor).let { it != null && !it.javaClass.name.startsWith(KTOR) }
        }
    }

    private companion object {
        const val KTOR = "io.ktor."

        /** Where Ktor keeps the interceptors of `HttpSend`: it has one list. */
        val INTERCEPTORS =
            orNull {
                HttpSend::class.java.declaredFields
                    .single { List::class.java.isAssignableFrom(it.type) }
                    .apply { isAccessible = true }
            }
    }
}

/** Whether [client] has plugins that are neither Ktor's nor Comeback's. */
private fun hasForeignPlugins(client: HttpClient): Boolean {
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
