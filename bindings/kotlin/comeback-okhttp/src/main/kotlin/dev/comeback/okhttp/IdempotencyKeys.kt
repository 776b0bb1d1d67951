// Makes idempotency keys: one per logical call, never over the caller's own.
package dev.comeback.okhttp

import okhttp3.Request
import java.util.UUID

/** On a request: a key is wanted whatever the policy says. */
internal object MakeIdempotencyKey

/**
 * The key of one [okhttp3.Call]. An interceptor outside may send the same request through Comeback again, and that is the same logical call; but
 * it may also send another one, and that must not carry this key.
 */
internal class IdempotencyKey {
    private var keyed: Request? = null
    private var key: String? = null

    fun keyFor(request: Request): String {
        val before = keyed
        val isSame = before != null && before.url == request.url && before.method == request.method && before.body === request.body
        return key?.takeIf { isSame } ?: UUID.randomUUID().toString().also {
            keyed = request
            key = it
        }
    }
}
