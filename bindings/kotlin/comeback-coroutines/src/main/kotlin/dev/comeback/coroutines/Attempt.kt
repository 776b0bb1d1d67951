// What a block of retry { } can know about its attempt.
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
    /** A key that is the same for all attempts of one call and differs between calls, by which the server recognises a repeated request. */
    public val idempotencyKey: String get() = key.value

    override fun toString(): String = "attempt $number"

    internal companion object {
        fun newKey(): Lazy<String> = lazy { UUID.randomUUID().toString() }
    }
}
