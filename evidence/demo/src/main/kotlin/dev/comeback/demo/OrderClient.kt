// What both clients have in common, and the one without Comeback.
package dev.comeback.demo

import dev.comeback.testing.FakeLink
import okhttp3.Call
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import java.io.IOException
import java.util.concurrent.TimeUnit

/** A client of the shop: an OkHttp client with one retry layer or the other. */
internal class OrderClient(
    val name: String,
    val setUp: String,
    private val http: OkHttpClient,
    private val calls: Call.Factory = http,
    /** What this client's retry layer wants on a request. */
    private val prepared: Request.Builder.(TapRecord) -> Request.Builder = { this },
    /** Another way than OkHttp's to place an order: whether the order at this port was placed. */
    private val place: ((port: Int, record: TapRecord) -> Boolean)? = null,
    private val closed: () -> Unit = {},
) : AutoCloseable {
    /** Places one order and waits for what comes of it. */
    fun order(
        port: Int,
        record: TapRecord,
    ) {
        val succeeded =
            try {
                place?.invoke(port, record) ?: throughOkHttp(port, record)
            } catch (_: IOException) {
                false
            }
        record.ended(succeeded)
    }

    private fun throughOkHttp(
        port: Int,
        record: TapRecord,
    ): Boolean {
        val request =
            Request
                .Builder()
                .url("http://$SHOP:$port/orders")
                .post("""{"tap":${record.tap.id}}""".toRequestBody(JSON))
                .tag(TapRecord::class.java, record)
                .prepared(record)
                .build()
        return calls.newCall(request).execute().use { response ->
            response.body.string()
            response.isSuccessful
        }
    }

    override fun close() {
        closed()
        http.dispatcher.executorService.shutdown()
        http.connectionPool.evictAll()
    }

    companion object {
        private val JSON = "application/json".toMediaType()

        /** Every name is the phone's own computer on a [FakeLink]; a name is looked up as an app does, and fails as on Android. */
        const val SHOP = "shop.test"

        /** What both clients are built on: the phone's sockets and look-ups. The timeouts are OkHttp's usual ones, written out. */
        fun common(link: FakeLink): OkHttpClient.Builder =
            OkHttpClient
                .Builder()
                .socketFactory(link.socketFactory)
                .dns { host -> link.resolve(host) }
                .connectTimeout(10, TimeUnit.SECONDS)
                .readTimeout(10, TimeUnit.SECONDS)
                .writeTimeout(10, TimeUnit.SECONDS)

        fun handWritten(link: FakeLink): OrderClient =
            OrderClient(
                HAND_WRITTEN,
                "interceptor with Thread.sleep: 4 sends, full jitter 1–8 s, OkHttp's silent re-sends on, no idempotency key, deaf to the network",
                common(link).addInterceptor(HandWrittenInterceptor()).addInterceptor(AttemptRecorder).build(),
            )
    }
}
