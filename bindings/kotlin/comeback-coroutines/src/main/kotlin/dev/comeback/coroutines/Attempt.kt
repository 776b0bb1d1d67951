// What a block of retry { } can know about its attempt.
package dev.comeback.coroutines

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

/**
 * One attempt of [retry].
 *
 * @property number from 1; attempts that do not count towards `max_attempts` are numbered too
 */
public class Attempt internal constructor(
    public val number: Int,
    private val keys: Keys,
) {
    /**
     * An idempotency key that is the same in all attempts of one call and differs between calls, by which the server recognises a repeated request. A block
     * that makes several requests asks for one by [name] for each. A key that is made in the block itself is another one in each attempt.
     */
    public fun key(name: String = ""): String = keys.of(name)

    override fun toString(): String = "attempt $number"

    /** The keys of one call, made when they are first asked for. */
    internal class Keys {
        private val byName = ConcurrentHashMap<String, String>(1)

        fun of(name: String): String {
            byName[name]?.let { return it }
            val made = UUID.randomUUID().toString()
            return byName.putIfAbsent(name, made) ?: made
        }
    }
}
