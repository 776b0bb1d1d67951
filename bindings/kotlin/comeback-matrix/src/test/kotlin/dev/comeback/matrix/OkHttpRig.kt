// A call through OkHttp's interceptor or call factory, with what an app puts further in.
package dev.comeback.matrix

import dev.comeback.RetryPolicy
import dev.comeback.okhttp.await
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
import dev.comeback.okhttp.retryPolicy
import dev.comeback.okhttp.retryReport
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.future.await
import kotlinx.coroutines.runInterruptible
import okhttp3.Authenticator
import okhttp3.Cache
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Dispatcher
import okhttp3.EventListener
import okhttp3.FormBody
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okio.Buffer
import java.io.IOException
import java.nio.file.Files
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.TimeUnit.MILLISECONDS

internal class OkHttpRig(
    private val cell: Cell,
    private val server: FaultServer,
    private val label: String,
) : Rig {
    private val calls: Call.Factory
    private val plain: OkHttpClient = plainClient(cell)

    init {
        val builder = plain.newBuilder()
        val isFactory = cell.driver == Driver.FACTORY
        if (!isFactory) builder.comeback(Comebacks.first, cell.policy) { label = { it.tag(String::class.java) } }
        builder.putInside(cell, server)
        if (cell.made == Made.UNNOTED) builder.eventListener(object : EventListener() {})
        val client = builder.build()
        calls =
            if (isFactory) Comebacks.first.callFactory(client, cell.policy) { label = { it.tag(String::class.java) } } else client
    }

    /** One for each attempt. */
    private val before = ConcurrentLinkedQueue<Call>()

    override fun prepare(key: String?) {
        if (cell.made == Made.BEFORE) repeat(cell.preset.maxAttempts) { before += calls.newCall(request(key)) }
    }

    override suspend fun call(key: String?): Answer {
        val response =
            when {
                cell.made == Made.BEFORE -> {
                    before.remove().await()
                }

                cell.made == Made.IN_CALLBACK -> {
                    fromCallback { calls.newCall(request(key)) }.await()
                }

                cell.driver == Driver.INTERCEPTOR && (cell.made == Made.IN_RUN_BLOCKING || cell.made == Made.PAST_ITS_END) -> {
                    calls
                        .newCall(
                            request(key),
                        ).execute()
                }

                // Who gives up on a call that blocks interrupts its thread.
                cell.driver == Driver.INTERCEPTOR -> {
                    runInterruptible(Dispatchers.IO) { calls.newCall(request(key)).execute() }
                }

                else -> {
                    calls.newCall(request(key)).await()
                }
            }
        return response.use {
            it.body.string()
            Answer(it.code, it.headers("Retry-After"), it.retryReport)
        }
    }

    private fun request(key: String?): Request {
        val url = if (cell.inner.startsWithOther) FaultServer.REFUSED_URL + "/main" else server.mainUrl
        return Request
            .Builder()
            .url(url)
            .tag(String::class.java, label)
            .apply {
                if (cell.send != Send.GET) post(if (cell.inner == Inner.SIGNING) form() else "order".toRequestBody())
                if (key != null) header("Idempotency-Key", key)
            }.build()
    }

    /** The response that the call brings which [make] makes, and which the callback of another call enqueues. */
    private fun fromCallback(make: () -> Call): CompletableFuture<Response> {
        val result = CompletableFuture<Response>()

        fun into(
            call: Call,
            then: (Response) -> Unit,
        ) = call.enqueue(
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) = then(response)

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) {
                    result.completeExceptionally(e)
                }
            },
        )
        into(warming()) { first ->
            first.close()
            // As a block does that can be cancelled: it makes no further call for an attempt that its limit has ended.
            if (result.isCancelled) return@into
            val call = make()
            result.whenComplete { _, _ -> if (result.isCancelled) call.cancel() }
            into(call) { result.complete(it) }
        }
        return result
    }

    private fun warming(): Call =
        calls.newCall(
            Request
                .Builder()
                .url(server.warmUrl)
                .retryPolicy(RetryPolicy.OFF)
                .build(),
        )

    override suspend fun warm() {
        warming().await().use { it.body.string() }
    }

    private fun form() = FormBody.Builder().add("what", "order").build()

    override fun close() = Unit
}

/** Threads, connections and cache are shared by all cells: they would cost more than the calls. */
private val BASE: OkHttpClient by lazy {
    val dispatcher = Dispatcher().apply { maxRequests = 500 }.apply { maxRequestsPerHost = 500 }
    OkHttpClient
        .Builder()
        .dispatcher(dispatcher)
        .readTimeout(10_000, MILLISECONDS)
        .build()
}
private val CACHE: Cache by lazy { Cache(Files.createTempDirectory("matrix").toFile(), 10L shl 20) }

/** As an app would have it without Comeback. */
internal fun plainClient(): OkHttpClient = BASE

internal fun plainClient(cell: Cell): OkHttpClient {
    if (cell.fault != Fault.LATE || cell.preset.limitsAttempts) return BASE
    return BASE.newBuilder().readTimeout(LATE_LIMIT_MILLIS, MILLISECONDS).build()
}

internal fun OkHttpClient.Builder.putInside(
    cell: Cell,
    server: FaultServer,
) {
    val inner = cell.inner
    when {
        inner == Inner.SIGNING -> addInterceptor(FormSigning)
        inner == Inner.CACHE -> cache(CACHE)
        inner == Inner.LOGGING -> addInterceptor(BodyLogging)
        inner == Inner.SECOND -> comeback(Comebacks.second, cell.policy) { label = { it.tag(String::class.java) } }
        inner.isAuth -> authenticator(TokenAuthenticator(server))
        inner.refresh != null -> addInterceptor(TokenInterceptor(server))
        inner.isFailover -> addInterceptor(Failover(cell, server))
    }
}

/** What the signing interceptor says when the body further in is not the app's own. */
internal const val SIGNS_FORMS = "only forms can be signed"

private object FormSigning : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val request = chain.request()
        val body = request.body ?: return chain.proceed(request)
        // As signing interceptors do: by the fields of the form.
        val form = body as? FormBody ?: throw IOException(SIGNS_FORMS)
        val fields = List(form.size) { form.name(it) + "=" + form.value(it) }
        return chain.proceed(request.newBuilder().header("Signature", fields.hashCode().toString()).build())
    }
}

private object BodyLogging : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        chain
            .request()
            .body
            ?.takeIf { !it.isOneShot() && !it.isDuplex() }
            ?.writeTo(Buffer())
        val response = chain.proceed(chain.request())
        response.peekBody(2)
        return response
    }
}

/** A refresh of the token through a client of its own, as OkHttp's documentation has it. Null: the server gives none. */
private fun fetchToken(server: FaultServer): String? {
    val client = BASE.newBuilder().readTimeout(FaultServer.REFRESH_LIMIT_MILLIS, MILLISECONDS).build()
    val request =
        Request
            .Builder()
            .url(server.tokenUrl)
            .post("refresh".toRequestBody())
            .build()
    return client.newCall(request).execute().use { if (it.isSuccessful) it.body.string() else null }
}

private fun Request.withToken(token: String) = newBuilder().header("Authorization", "Bearer $token").build()

private class TokenAuthenticator(
    private val server: FaultServer,
) : Authenticator {
    override fun authenticate(
        route: okhttp3.Route?,
        response: Response,
    ): Request? {
        if (response.request.header("Authorization") != null) return null
        return response.request.withToken(fetchToken(server) ?: return null)
    }
}

private class TokenInterceptor(
    private val server: FaultServer,
) : Interceptor {
    @Volatile
    private var token: String? = null

    override fun intercept(chain: Interceptor.Chain): Response {
        val request = token?.let { chain.request().withToken(it) } ?: chain.request()
        val response = chain.proceed(request)
        if (response.code != 401) return response
        response.close()
        token = fetchToken(server) ?: throw IOException("signed out")
        return chain.proceed(request.withToken(checkNotNull(token)))
    }
}

private class Failover(
    private val cell: Cell,
    private val server: FaultServer,
) : Interceptor {
    private val other =
        plainClient(cell)
            .newBuilder()
            .apply { if (cell.inner.otherHasComeback) comeback(Comebacks.second, cell.policy) { label = { it.tag(String::class.java) } } }
            .build()

    override fun intercept(chain: Interceptor.Chain): Response {
        val request = chain.request()
        answered { if (cell.inner.startsWithOther) askOther(request, server.mainUrl) else chain.proceed(request) }?.let { return it }
        return if (cell.inner.startsWithOther) chain.proceed(request) else askOther(request, FaultServer.REFUSED_URL + "/main")
    }

    private fun askOther(
        request: Request,
        url: String,
    ): Response = other.newCall(request.newBuilder().url(url).build()).execute()

    private fun answered(ask: () -> Response): Response? =
        try {
            ask().let { response -> response.takeIf { it.code < 400 } ?: null.also { response.close() } }
        } catch (_: IOException) {
            null
        }
}
