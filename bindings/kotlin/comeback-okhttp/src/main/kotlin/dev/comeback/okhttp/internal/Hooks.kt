// The app's hooks. What they throw is ignored, and they cannot read a body.
package dev.comeback.okhttp.internal

import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import dev.comeback.driver.orNull
import dev.comeback.okhttp.ComebackOkHttp
import okhttp3.MediaType
import okhttp3.Request
import okhttp3.Response
import okhttp3.ResponseBody
import okio.BufferedSource
import java.io.IOException

/** The hooks of [options] as they were when the client was built. */
internal class Hooks(
    options: ComebackOkHttp,
) {
    private val policyFor = options.policyFor
    private val classify = options.classify
    private val label = options.label

    /** Whether nothing further in sends requests through other clients. */
    val onlyThisClientSends: Boolean = options.onlyThisClientSends

    /** Whether this thread must never wait. */
    val isMainThread: () -> Boolean = options.isMainThread

    /** Whether every outcome has to be shown to the app, good ones too. */
    val classifies: Boolean = classify != null

    fun policyFor(request: Request): RetryPolicy? = policyFor?.let { hook -> orNull { hook(request) } }

    fun label(request: Request): String? = label?.let { hook -> orNull { hook(request) } }

    fun classify(
        request: Request,
        response: Response,
    ): OutcomeClass? =
        classify?.let { hook ->
            orNull { hook(request, response.newBuilder().body(Unreadable(response.body)).build(), null) }
        }

    fun classify(
        request: Request,
        exception: IOException,
    ): OutcomeClass? = classify?.let { hook -> orNull { hook(request, null, exception) } }
}

/** Shows a body's type and length, but cannot be read: the app still needs the whole body. */
private class Unreadable(
    private val body: ResponseBody,
) : ResponseBody() {
    override fun contentType(): MediaType? = body.contentType()

    override fun contentLength(): Long = body.contentLength()

    override fun source(): BufferedSource = throw IllegalStateException("classify cannot read a response's body")

    override fun close(): Unit = Unit
}
