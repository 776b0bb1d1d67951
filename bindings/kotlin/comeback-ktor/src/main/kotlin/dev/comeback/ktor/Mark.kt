// What Comeback leaves on a request, for itself: one attribute, since each costs every copy of the request.
package dev.comeback.ktor

import io.ktor.util.AttributeKey

/** A request made from another has that one's mark too, so none is believed unread. */
internal sealed interface Mark {
    /** A layer further out has the call, and those further in are to be told. */
    object Below : Mark

    companion object {
        val KEY = AttributeKey<Mark>("Comeback")
    }
}
