// Makes idempotency keys: one per logical call, never over the caller's own.
package dev.comeback.okhttp.internal

import dev.comeback.driver.DriverFacts
import okhttp3.HttpUrl
import okhttp3.Request
import okhttp3.Response
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
}

private fun isSame(
    one: Request,
    other: Request,
): Boolean = one.url == other.url && one.method == other.method && one.body === other.body

/** On a request whose key Comeback made, and so on its copies. */
internal class MadeKey(
    private val request: Request,
    private val header: String,
    private val value: String,
) {
    private enum class State { UNDER_WAY, SUCCEEDED, FAILED }

    @Volatile
    private var state = State.UNDER_WAY

    @Volatile
    private var redirectedTo: HttpUrl? = null

    /** Whether the call that it was made for goes on. */
    val isUnderWay: Boolean get() = state == State.UNDER_WAY

    /** That call is at its end, or another that took the key over afterwards: by [response], or a failure. */
    fun ended(response: Response?) {
        redirectedTo = response?.request?.url
        state = if (response != null && response.code < FIRST_ERROR) State.SUCCEEDED else State.FAILED
    }

    /** Whether [copy] has this key, though it is another request. */
    fun isStrangeTo(copy: Request): Boolean {
        if (copy.header(header) != value) return false
        return when (state) {
            // A copy is a part of the call: sent to another host, for instance.
            State.UNDER_WAY -> false

            State.SUCCEEDED -> true

            State.FAILED -> !isSame(copy, request) && !isSame(copy, request.newBuilder().url(redirectedTo ?: request.url).build())
        }
    }

    fun removedFrom(copy: Request): Request =
        copy
            .newBuilder()
            .removeHeader(header)
            .tag(MadeKey::class.java, null)
            .build()
}

/**
 * [request] as one of a new call, if it was made from one that Comeback has sent. Such a copy has that one's report, which is not about it, and its key: by it the
 * server would take an order for the one before. A copy of a request that failed, with nothing changed, is that request again.
 */
internal fun asNew(request: Request): Request {
    val copy = withoutReport(request)
    val made = copy.tag(MadeKey::class.java) ?: return copy
    return if (made.isStrangeTo(copy)) made.removedFrom(copy) else copy
}

/** [request] with a key if one is wanted and it has none. */
internal inline fun withKey(
    request: Request,
    facts: DriverFacts,
    keys: () -> IdempotencyKeys,
): Request {
    val isWanted = facts.makesKey(request.method) || request.tag(MakeIdempotencyKey::class.java) != null
    if (!isWanted || request.header(facts.keyHeader) != null) return request
    val key = keys().keyFor(request).let { if (facts.keyQuoted) "\"$it\"" else it }
    return request
        .newBuilder()
        .header(facts.keyHeader, key)
        .tag(MadeKey::class.java, MadeKey(request, facts.keyHeader, key))
        .build()
}
