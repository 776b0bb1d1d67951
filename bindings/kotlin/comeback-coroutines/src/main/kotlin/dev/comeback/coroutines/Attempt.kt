// What a block of retry { } may know of the attempt it makes.
package dev.comeback.coroutines

import java.util.UUID

/**
 * One attempt of [retry].
 *
 * @property number from 1; attempts that do not count towards `max_attempts` are numbered too
 */
public class Attempt internal constructor(
    public val number: Int,
    private val key: Lazy<String>,
) {
    /** The same for all attempts of one call, and another for each call: for a request that the server must recognise when it comes again. */
    public val idempotencyKey: String get() = key.value

    override fun toString(): String = "attempt $number"

    internal companion object {
        fun newKey(): Lazy<String> = lazy { UUID.randomUUID().toString() }
    }
}
