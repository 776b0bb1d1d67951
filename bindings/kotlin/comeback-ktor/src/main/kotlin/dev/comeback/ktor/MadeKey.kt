// A key that Comeback made for one request, by which copies of that request are known.
package dev.comeback.ktor

import io.ktor.client.request.HttpRequestBuilder
import io.ktor.util.AttributeKey
import kotlinx.coroutines.Job

/** An attribute of the request, and so of its copies. */
internal class MadeKey(
    request: HttpRequestBuilder,
    val header: String,
    private val value: String,
) {
    private val method = request.method
    private val url = request.url.buildString()
    private val body = request.body
    private val call: Job = request.executionContext

    @Volatile
    private var hasSucceeded = false

    /** [call] has its answer: the one that it was made for, or another that took the key over afterwards. */
    fun succeeded(call: Job) {
        if (call === this.call || !this.call.isActive) hasSucceeded = true
    }

    /** Whether [copy] has this key, though it is another request. While the call is under way a copy is a part of it: sent to another host, for instance. */
    fun isStrangeTo(copy: HttpRequestBuilder): Boolean =
        when {
            copy.headers[header] != value -> false
            copy.executionContext === call -> false
            hasSucceeded -> true
            call.isActive -> false
            else -> copy.method != method || copy.url.buildString() != url || copy.body !== body
        }

    companion object {
        val KEY: AttributeKey<MadeKey> = AttributeKey("ComebackMadeKey")
    }
}
