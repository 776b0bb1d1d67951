// A block that begins what it does not end: what its attempts send, they send when they have failed.
package dev.comeback.matrix

import dev.comeback.okhttp.comeback
import kotlinx.coroutines.future.await
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import okhttp3.Call
import okhttp3.Callback
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import java.io.IOException
import java.util.concurrent.CompletableFuture

internal class Unended(
    private val cell: Cell,
    private val server: FaultServer,
) {
    private var before: CompletableFuture<Answer>? = null

    /** An attempt: the callback of its first call does [send]. The next attempt lasts until that is over. */
    suspend fun attempt(send: suspend () -> Answer): Answer {
        val earlier = before
        val late = CompletableFuture<Answer>()
        before = late
        CLIENT.newCall(Request.Builder().url(server.lateUrl).build()).enqueue(
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) {
                    response.close()
                    runCatching { runBlocking { send() } }.fold(late::complete, late::completeExceptionally)
                }

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) {
                    late.completeExceptionally(e)
                }
            },
        )
        // Whoever awaits may give up; what is awaited goes on.
        if (cell.isCut) return late.thenApply { it }.await()
        if (earlier != null) withTimeoutOrNull(PATIENCE_MILLIS) { runCatching { earlier.thenApply { it }.await() } }
        throw IOException("lost")
    }

    private companion object {
        const val PATIENCE_MILLIS = 1_000L
        val CLIENT: OkHttpClient by lazy { plainClient().newBuilder().comeback(Comebacks.first).build() }
    }
}
