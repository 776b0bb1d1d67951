// What Comeback leaves on a request, for itself: one attribute, since each costs every copy of the request.
package dev.comeback.ktor

import dev.comeback.OuterAttempt
import io.ktor.util.AttributeKey

/** A request made from another has that one's mark too, so none is believed unread. */
internal sealed interface Mark {
    /** A layer further out has the call: those further in are to tell [outer]. */
    class Below(
        val outer: OuterAttempt,
    ) : Mark

    companion object {
        val KEY = AttributeKey<Mark>("Comeback")
    }
}
