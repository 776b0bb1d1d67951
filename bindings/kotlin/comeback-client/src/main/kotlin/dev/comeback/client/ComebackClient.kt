// The client as an app sees it.
package dev.comeback.client

import dev.comeback.Comeback
import dev.comeback.RetryPolicy
import dev.comeback.driver.orNull
import java.security.cert.X509Certificate
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

/**
 * An HTTP client in Rust: HTTP/1.1 and HTTP/2, TLS with Mozilla's roots, and Comeback's retries inside. Make one per app; it may be used from any
 * thread, and it is to be closed.
 *
 * ```
 * val client = ComebackClient(comeback) { policy = RetryPolicy.READ }
 * val response = client.get("https://example.org/orders") { header("Accept", "application/json") }
 * ```
 *
 * Making one does no work on the calling thread; the native library is loaded in the background, and calls wait for it. Calls run on two native
 * threads of its own. One Java thread hears what becomes of them. The [Comeback]'s listener is called on others: one that blocks holds up the answer of its own
 * call, and with a [Comeback.Builder.listenerExecutor] none.
 *
 * A call is cancelled with its coroutine: its connection or stream ends at once. After [Comeback.close] calls go once.
 *
 * Where the native library cannot be loaded there is no client: calls fail with [ClientException.Unavailable], the listener hears
 * [dev.comeback.RetryEvent.Unavailable] once, and [selfCheck] throws.
 *
 * There is no `classify` here: retries run inside the library, which never calls into the virtual machine. [Builder.policyFor] chooses a policy by the
 * request, and the policy's `retryStatuses` say which statuses go again.
 */
public class ComebackClient internal constructor(
    builder: Builder,
) : AutoCloseable {
    private val policy = builder.policy
    private val policyFor = builder.policyFor
    internal val calls = Calls(builder.comeback, builder)

    /**
     * Sends a request, and repeats it as its policy allows.
     *
     * @throws ClientException if there is no response to give
     * @throws dev.comeback.RetryStoppedException if the last response was closed before a wait in which the call then ended
     */
    public suspend fun execute(request: ClientRequest): ClientResponse = calls.execute(request, request.policy ?: chosen(request) ?: policy)

    private fun chosen(request: ClientRequest): RetryPolicy? = policyFor?.let { hook -> orNull { hook(request) } }

    /**
     * Waits until the native library is loaded and the client is built. For a test, or a check at start-up: the first one takes some hundred
     * milliseconds, in the background.
     *
     * @throws ClientException.Unavailable if the library cannot be used on this device
     * @throws ClientException.InvalidSettings if the client was built with invalid settings
     */
    public suspend fun selfCheck() {
        calls.ready()
    }

    /** Executes a GET. */
    public suspend fun get(
        url: String,
        configure: ClientRequest.Builder.() -> Unit = {},
    ): ClientResponse = execute(ClientRequest("GET", url, configure))

    /** Executes a HEAD. */
    public suspend fun head(
        url: String,
        configure: ClientRequest.Builder.() -> Unit = {},
    ): ClientResponse = execute(ClientRequest("HEAD", url, configure))

    /** Executes a POST. Without an idempotency key it goes again only if it provably was not sent. */
    public suspend fun post(
        url: String,
        configure: ClientRequest.Builder.() -> Unit = {},
    ): ClientResponse = execute(ClientRequest("POST", url, configure))

    /** Executes a PUT. */
    public suspend fun put(
        url: String,
        configure: ClientRequest.Builder.() -> Unit = {},
    ): ClientResponse = execute(ClientRequest("PUT", url, configure))

    /** Executes a PATCH. Without an idempotency key it goes again only if it provably was not sent. */
    public suspend fun patch(
        url: String,
        configure: ClientRequest.Builder.() -> Unit = {},
    ): ClientResponse = execute(ClientRequest("PATCH", url, configure))

    /** Executes a DELETE. */
    public suspend fun delete(
        url: String,
        configure: ClientRequest.Builder.() -> Unit = {},
    ): ClientResponse = execute(ClientRequest("DELETE", url, configure))

    /** Ends all calls with [ClientException.Closed]; later ones end so too. The [Comeback] stays open. Does not block. */
    override fun close() {
        calls.close()
    }

    /** The settings of a [ComebackClient]. */
    public class Builder internal constructor(
        internal val comeback: Comeback,
    ) {
        internal val authorities = ArrayList<ByteArray>()

        /** The policy of requests that have none of their own. */
        public var policy: RetryPolicy = RetryPolicy.DEFAULT

        /**
         * Chooses the policy for a request; null: the client's. A request's own comes before it. It is called on the caller's thread, by many calls at
         * once, and should be quick; if it throws that counts as null.
         */
        public var policyFor: ((request: ClientRequest) -> RetryPolicy?)? = null

        /** `User-Agent`; null: none is sent. */
        public var userAgent: String? = null

        /** How long a connect may take, TLS included; null: no limit. A later attempt's is shorter when time is short. */
        public var connectTimeout: Duration? = 10.seconds

        /** [connectTimeout] in milliseconds. */
        public var connectTimeoutMillis: Long?
            get() = connectTimeout?.inWholeMilliseconds
            set(value) {
                connectTimeout = value?.milliseconds
            }

        /** How long nothing may come from the server; null: no limit. A later attempt's is shorter when time is short. */
        public var readTimeout: Duration? = 10.seconds

        /** [readTimeout] in milliseconds. */
        public var readTimeoutMillis: Long?
            get() = readTimeout?.inWholeMilliseconds
            set(value) {
                readTimeout = value?.milliseconds
            }

        /**
         * How many bytes of a response's body are read as part of its attempt: a response that breaks off before that is tried again, if its request may be
         * repeated. The rest is read too, but is not tried again.
         */
        public var readUpTo: Long = 1L shl 20

        /** Trusts this authority beside Mozilla's. */
        public fun trust(authority: X509Certificate): Builder = apply { authorities += authority.encoded }

        public fun build(): ComebackClient = ComebackClient(this)
    }

    public companion object {
        /** For Java; in Kotlin `ComebackClient(comeback) { … }`. */
        @JvmStatic
        public fun builder(comeback: Comeback): Builder = Builder(comeback)
    }
}

/** Makes a [ComebackClient]; see [ComebackClient.Builder]. */
@JvmSynthetic
public fun ComebackClient(
    comeback: Comeback,
    configure: ComebackClient.Builder.() -> Unit = {},
): ComebackClient = ComebackClient.builder(comeback).apply(configure).build()
