// A request's tag that says which attempt of a factory's call it belongs to.
package dev.comeback.okhttp.internal

import dev.comeback.okhttp.attemptNumber
import okhttp3.Request

internal class AttemptNumber(
    val number: Int,
)

/** A first attempt's request is the app's own; but that may be made from one that was delivered. */
internal fun numbered(
    request: Request,
    number: Int,
): Request {
    if (request.attemptNumber == number) return request
    return request.newBuilder().tag(AttemptNumber::class.java, if (number == 1) null else AttemptNumber(number)).build()
}
