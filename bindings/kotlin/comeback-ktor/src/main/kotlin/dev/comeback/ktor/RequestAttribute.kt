// What Comeback leaves on a request, for itself: one attribute, since each costs every copy of the request.
package dev.comeback.ktor

import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.util.AttributeKey

/** A request made from another has that one's attribute too, so none is believed unread. */
internal sealed interface RequestAttribute {
    companion object {
        val KEY = AttributeKey<RequestAttribute>("Comeback")
    }
}

/** The attribute of a request that may enter the engine: it hears what becomes of it there. All in the coroutine that sends it. */
internal sealed interface OnItsWay : RequestAttribute {
    /** [request] enters the engine: every other plugin has had its say. */
    fun enters(request: HttpRequestBuilder)

    /** The head of its answer is there. */
    fun headCame(response: HttpResponse)

    /** The engine threw. */
    fun engineThrew(thrown: Throwable)
}
