// What the core must know of a request, and nothing more.
package dev.comeback

/**
 * Facts of a request that decide whether it may be repeated.
 *
 * @property method as on the wire, case sensitive
 * @property hasKey whether it carries an idempotency key, the caller's or one made
 * @property conditional whether it has If-Match, If-None-Match or If-Unmodified-Since
 * @property hasBody whether it has a body, be it empty
 * @property bodyReplayable whether that body can be sent again byte for byte; true without a body
 * @property onlyIfCached whether it has Cache-Control: only-if-cached
 * @suppress
 */
@InternalComebackApi
public class RequestFacts(
    public val method: String,
    public val hasKey: Boolean = false,
    public val conditional: Boolean = false,
    public val hasBody: Boolean = false,
    public val bodyReplayable: Boolean = true,
    public val onlyIfCached: Boolean = false,
)
