// What the core must know of a request, and nothing more.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/**
 * Facts of a request that decide whether it may be repeated.
 *
 * @property head its lines, as it came in, with the key that was made for it
 * @property hasBody whether it has a body, even an empty one
 * @property bodyReplayable whether that body can be sent again byte for byte; true without a body
 * @property keyIsMade whether the layer made the key: by it the server does not recognise a request of another call
 * @suppress
 */
@InternalComebackApi
public class RequestFacts(
    public val head: RequestHead,
    public val hasBody: Boolean = false,
    public val bodyReplayable: Boolean = true,
    public val keyIsMade: Boolean = false,
) {
    public constructor(method: String, hasBody: Boolean = false) : this(RequestHead(method), hasBody)
}
