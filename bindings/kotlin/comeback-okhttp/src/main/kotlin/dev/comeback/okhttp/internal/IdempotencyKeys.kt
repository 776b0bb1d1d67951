// Makes idempotency keys: one per logical call, never over the caller's own.
package dev.comeback.okhttp.internal

import dev.comeback.driver.DriverFacts
import okhttp3.Request
import java.util.UUID

/** On a request: a key is wanted whatever the policy says. */
internal object MakeIdempotencyKey

/**
 * The keys of one [okhttp3.Call]. An interceptor further out may send the same request through Comeback again; that is the same logical call. It may also
 * send a different request, which must not have the first one's key.
 */
internal class IdempotencyKeys {
    private val keyed = ArrayList<Pair<Request, String>>(1)

    fun keyFor(request: Request): String {
        val before = keyed.firstOrNull { (other, _) -> isSame(request, other) }
        return before?.second ?: UUID.randomUUID().toString().also { keyed += request to it }
    }

    private fun isSame(
        one: Request,
        other: Request,
    ): Boolean = one.url == other.url && one.method == other.method && one.body === other.body
}

/** [request] with a key if one is wanted and it has none. */
internal inline fun withKey(
    request: Request,
    facts: DriverFacts,
    keys: () -> IdempotencyKeys,
): Request {
    val isWanted = facts.makesKey(request.method) || request.tag(MakeIdempotencyKey::class.java) != null
    if (!isWanted || request.header(facts.keyHeader) != null) return request
    val key = keys().keyFor(request)
    return request.newBuilder().header(facts.keyHeader, if (facts.keyQuoted) "\"$key\"" else key).build()
}
