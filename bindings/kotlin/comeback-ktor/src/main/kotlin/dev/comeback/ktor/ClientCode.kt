// Which code of the app's runs inside an OkHttp engine: it may send a request through another client, which nobody here hears.
package dev.comeback.ktor

import dev.comeback.driver.okhttp.isForeign
import okhttp3.Call
import okhttp3.OkHttpClient
import okhttp3.internal.connection.RealCall
import java.lang.ref.WeakReference

/** The same for all calls of one OkHttp client, so it is found out once. */
internal class ClientCode private constructor(
    private val client: WeakReference<OkHttpClient>?,
    val hasForeignInterceptors: Boolean,
    val hasForeignNetworkInterceptors: Boolean,
) {
    companion object {
        /** Of a call that is not OkHttp's own. */
        private val UNKNOWN = ClientCode(null, hasForeignInterceptors = true, hasForeignNetworkInterceptors = true)

        /** Most apps have one client. An engine builds one for each set of timeouts. */
        @Volatile
        private var last = UNKNOWN

        fun of(call: Call): ClientCode {
            val client = clientOf(call) ?: return UNKNOWN
            return last.takeIf { it.client?.get() === client } ?: of(client).also { last = it }
        }

        private fun of(client: OkHttpClient) =
            ClientCode(WeakReference(client), client.interceptors.any(::isForeign), client.networkInterceptors.any(::isForeign))

        /** Null where OkHttp is another than this was built against. */
        private fun clientOf(call: Call): OkHttpClient? =
            try {
                (call as? RealCall)?.client
            } catch (_: LinkageError) {
                null
            }
    }
}
