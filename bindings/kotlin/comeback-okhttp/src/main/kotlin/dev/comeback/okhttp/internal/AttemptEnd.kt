// One attempt, and its outcome.
package dev.comeback.okhttp.internal

import dev.comeback.driver.DriverFacts
import dev.comeback.driver.okhttp.asThrown
import dev.comeback.driver.orNull
import okhttp3.Interceptor
import okhttp3.Request
import okhttp3.Response
import java.io.IOException
import java.io.InterruptedIOException

internal sealed class AttemptEnd {
    class Answered(
        val response: Response,
    ) : AttemptEnd()

    /** Made on the thread that made the attempt. */
    class Failed(
        val exception: IOException,
    ) : AttemptEnd() {
        /** An interrupt's flag is set again. */
        val isInterrupt: Boolean = (orNull { isInterrupt(exception) } ?: false).also { if (it) Thread.currentThread().interrupt() }
    }

    /** It threw something that is no I/O error. Comeback does not judge it. */
    class Broke(
        val thrown: Throwable,
    ) : AttemptEnd()

    /** It reached its own limit first, and its call was cancelled. */
    class Cut(
        val response: Response?,
        val exception: IOException?,
    ) : AttemptEnd()

    /**
     * Its call was cancelled and it did not end: it goes on alone, and what it brings is closed.
     *
     * @property isCut it reached its own limit; else the caller or the client's timeout ended the call
     * @property sentNothing by this client, and it never will
     * @property ranNothing no code further in has run for it, and none will
     */
    class LeftAlone(
        val isCut: Boolean,
        val sentNothing: Boolean,
        val ranNothing: Boolean,
    ) : AttemptEnd()
}

/** The first status that is an error. */
internal const val FIRST_ERROR = 400

/** Makes an attempt, reading the body included where [facts] want it; [isFound]: layers further in may look for it. [answered] sees a response first, and may return it. */
internal inline fun makeAttempt(
    chain: Interceptor.Chain,
    request: Request,
    layer: CallLayer,
    facts: DriverFacts,
    isFound: Boolean,
    timer: CutTimer?,
    answered: (Response) -> Unit,
): AttemptEnd {
    var isCut = false
    var response: Response? = null
    var thrown: Throwable? = null
    try {
        response = layer.asSent(layer.asOuter(chain.call(), isFound) { chain.proceed(request) })
        readBody(response, request, facts)
    } catch (caught: InterruptedException) {
        // OkHttp's racing connects throw it as it is. The flag is set again where the failure is made.
        thrown = InterruptedIOException("interrupted").apply { initCause(caught) }
    } catch (caught: Throwable) {
        thrown = if (caught is IOException) caught.asThrown() else caught
    } finally {
        if (timer != null) isCut = timer.ended()
    }
    if (thrown != null && thrown !is IOException) {
        response?.let { orNull { it.close() } }
        return AttemptEnd.Broke(thrown)
    }
    if (isCut) return AttemptEnd.Cut(response, thrown as IOException?)
    if (thrown != null) {
        response?.let { orNull { it.close() } }
        return AttemptEnd.Failed(thrown as IOException)
    }
    val answer = checkNotNull(response)
    answered(answer)
    return AttemptEnd.Answered(answer)
}
