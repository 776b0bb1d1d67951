// Call.await() for coroutines, which are an optional dependency: only this file needs them.
@file:JvmName("ComebackCalls")

package dev.comeback.okhttp

import dev.comeback.driver.orNull
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.suspendCancellableCoroutine
import okhttp3.Call
import okhttp3.Callback
import okhttp3.Response
import java.io.IOException
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.resumeWithException

/**
 * Enqueues this call and suspends until its response is there. The caller must close the response. Cancelling the coroutine cancels the call at once, in an
 * attempt or in a wait; a response that comes after that is closed.
 *
 * @throws IOException as the call does, with its report
 */
public suspend fun Call.await(): Response =
    suspendCancellableCoroutine { continuation ->
        continuation.invokeOnCancellation { cancel() }
        enqueue(
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) {
                    continuation.resume(response) { _, late, _ -> closeElsewhere(late) }
                }

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) {
                    continuation.resumeWithException(e)
                }
            },
        )
    }

/** It is cancelled on whatever thread it likes, perhaps Android's main thread, where closing a socket is not allowed. */
private fun closeElsewhere(late: Response) {
    Dispatchers.IO.dispatch(EmptyCoroutineContext) { orNull { late.close() } }
}
