// A request to Comeback's client: a value.
package dev.comeback.client

import dev.comeback.RetryPolicy
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/**
 * An HTTP request. Immutable; it may be executed more than once, from any thread.
 *
 * ```
 * ClientRequest("POST", "https://example.org/orders") {
 *     header("Content-Type", "application/json")
 *     header("Idempotency-Key", key)
 *     body(json)
 *     policy = RetryPolicy.PAYMENT
 * }
 * ```
 */
public class ClientRequest private constructor(
    builder: Builder,
) {
    /** GET, POST … */
    public val method: String = builder.method

    public val url: String = builder.url

    /** Names and values, in order. */
    public val headers: List<Pair<String, String>> = builder.headers.toList()

    /** The policy of this request; null: the client's. */
    public val policy: RetryPolicy? = builder.policy

    /** The longest the call may take, waits included, until its body was read; null: as the policy has it. */
    public val timeout: Duration? = builder.timeout

    /** Whether an idempotency key is made if the request has none. The server must support it. */
    public val makeKey: Boolean = builder.makeKey

    /** The app's name for the call, in its events. */
    public val label: String? = builder.label

    internal val body: ByteArray? = builder.bytes

    /** Without URL, headers and body, which are not for logs. */
    override fun toString(): String = "ClientRequest($method${label?.let { ", $it" }.orEmpty()})"

    /** A request in the making; for one thread. */
    public class Builder internal constructor(
        internal val method: String,
        internal val url: String,
    ) {
        internal val headers = ArrayList<Pair<String, String>>()
        internal var bytes: ByteArray? = null

        /** This request's policy, instead of the client's; [RetryPolicy.OFF]: it goes once. */
        public var policy: RetryPolicy? = null

        /** The longest the call may take, waits included, until its body was read. */
        public var timeout: Duration? = null

        /** [timeout] in milliseconds. */
        public var timeoutMillis: Long?
            get() = timeout?.inWholeMilliseconds
            set(value) {
                timeout = value?.milliseconds
            }

        /** Whether an idempotency key is made if the request has none: the same on every attempt. The server must support it. */
        public var makeKey: Boolean = false

        /** The app's name for the call, in its events. */
        public var label: String? = null

        /** Adds a header. An invalid one leads to [ClientException.InvalidRequest] when the request is executed. */
        public fun header(
            name: String,
            value: String,
        ): Builder = apply { headers += name to value }

        /** The body. The bytes are copied when the call starts; do not change them before that. */
        public fun body(bytes: ByteArray): Builder = apply { this.bytes = bytes }

        /** The body as UTF-8. */
        public fun body(text: String): Builder = body(text.toByteArray())

        public fun build(): ClientRequest = ClientRequest(this)
    }

    public companion object {
        /** For Java; in Kotlin `ClientRequest(method, url) { … }`. */
        @JvmStatic
        public fun builder(
            method: String,
            url: String,
        ): Builder = Builder(method, url)
    }
}

/** Makes a [ClientRequest]; see [ClientRequest.Builder]. */
@JvmSynthetic
public fun ClientRequest(
    method: String,
    url: String,
    configure: ClientRequest.Builder.() -> Unit = {},
): ClientRequest = ClientRequest.builder(method, url).apply(configure).build()
