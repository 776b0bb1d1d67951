// The lines of a request's head that decide whether it may be repeated, as they stand there. The core reads them.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/**
 * What of a request's head the core must know. All adapters take it by [read].
 *
 * @property method as on the wire, case sensitive
 * @property key the lines of the idempotency key's header
 * @property conditions the lines of If-Match, If-None-Match and If-Unmodified-Since
 * @property cacheControl the lines of Cache-Control
 * @suppress
 */
@InternalComebackApi
public class RequestHead(
    public val method: String,
    public val key: List<String> = emptyList(),
    public val conditions: List<String> = emptyList(),
    public val cacheControl: List<String> = emptyList(),
) {
    /** The same without its key: by a key that was made for this request alone the server could not recognise the next one. */
    public fun withoutKey(): RequestHead = RequestHead(method, emptyList(), conditions, cacheControl)

    internal fun isSameAs(other: RequestHead): Boolean =
        method == other.method && key == other.key && conditions == other.conditions && cacheControl == other.cacheControl

    public companion object {
        private val CONDITIONS = arrayOf("If-Match", "If-None-Match", "If-Unmodified-Since")

        /** [lines] are those of the header of that name, in any case; null or none if there is none. */
        public inline fun read(
            method: String,
            keyHeader: String,
            lines: (name: String) -> List<String>?,
        ): RequestHead {
            var conditions = emptyList<String>()
            for (name in conditionHeaders()) {
                val found = lines(name)
                if (!found.isNullOrEmpty()) conditions = conditions + found
            }
            return RequestHead(method, lines(keyHeader).orEmpty(), conditions, lines("Cache-Control").orEmpty())
        }

        @PublishedApi
        internal fun conditionHeaders(): Array<String> = CONDITIONS
    }
}
