// What a driver needs to know of a policy before a first attempt; the core computed it when it compiled the policy.
package dev.comeback.driver

import dev.comeback.Comeback
import dev.comeback.InternalComebackApi
import dev.comeback.RetryPolicy
import dev.comeback.ffi.CompiledPolicy

/**
 * Facts for drivers. All durations are nanoseconds, null where there is no limit.
 *
 * @suppress
 */
@InternalComebackApi
public class DriverFacts internal constructor(
    compiled: CompiledPolicy,
) {
    private val repeatable = compiled.repeatable.toSet()
    private val repeatableKeyed = compiled.repeatableKeyed.toSet()
    private val repeatableConditional = compiled.repeatableConditional.toSet()
    private val makeKey = compiled.makeKey.toSet()

    /** The name of the idempotency key's header. */
    public val keyHeader: String = compiled.keyHeader

    /** Whether the key is written in quotes. */
    public val keyQuoted: Boolean = compiled.keyQuoted

    /** The header that holds a server's explicit word, if the policy names one. */
    public val shouldRetryHeader: String? = compiled.shouldRetryHeader

    /** How long one attempt may take until its response head. */
    public val attemptTimeoutNanos: Long? = compiled.attemptTimeout

    /** How long one route's connect may take. */
    public val connectTimeoutNanos: Long? = compiled.connectTimeout

    /** How long after the call's beginning an attempt in flight is cut off; null: never. */
    public val cutAfterNanos: Long? = compiled.cutAfter

    /** Whether the HTTP client must not re-send on its own. */
    public val clientResendsOff: Boolean = compiled.clientResendsOff

    /** How many bytes of a response's body are read within the attempt; null: the attempt ends with the head. Never an event stream or an upgrade. */
    public val readBodyBytes: Long? = compiled.readBodyBytes

    /** Whether nothing is ever known of the network; see [Comeback.networkFor]. */
    internal val ignoresNetwork: Boolean = compiled.ignoresNetwork

    /** The most counted attempts, the first included. A client with a cap of its own must allow more sends. */
    public val maxAttempts: Int = compiled.maxAttempts

    /** Whether a request of this method may go again without a key and without conditions. */
    public fun mayRepeat(method: String): Boolean = method in repeatable

    /** Whether a request with this head may go again after it may have arrived. Of methods that are not named in HTTP itself it says no. */
    public fun mayRepeat(head: RequestHead): Boolean =
        when {
            head.key.any { it.isNotBlank() } -> head.method in repeatableKeyed
            head.conditions.isNotEmpty() -> head.method in repeatableConditional
            else -> head.method in repeatable
        }

    /**
     * Whether a request further in, which its own layer sends by [theirs], may be made again by another attempt of this policy's. As the core says it of requests
     * that it is told of: `repeat = always` vouches for all of them, `never` for none, and else their own policy decides.
     */
    internal fun mayRepeatInside(
        theirs: RetryPolicy?,
        head: RequestHead,
    ): Boolean {
        if (mayRepeat("POST")) return true
        val facts = theirs?.driverFacts ?: checkNotNull(RetryPolicy.DEFAULT.driverFacts)
        return mayRepeat("GET") && facts.mayRepeat(head)
    }

    /** Whether a request of this method gets an idempotency key if it has none. */
    public fun makesKey(method: String): Boolean = method in makeKey

    private val limitWithoutClientEnd = Limit.of(shorter(attemptTimeoutNanos, cutAfterNanos), null)

    /** The limit of the first attempt of a call, which began at [began] and is ended by its client at [clientEnd]; the inactivity timeouts are the app's own. */
    public fun firstLimit(
        began: Long,
        clientEnd: Long?,
    ): Limit {
        if (cutAfterNanos == null || clientEnd == null) return limitWithoutClientEnd
        return Limit.of(shorter(limitWithoutClientEnd.hardNanos, nanosUntil(clientEnd, began)), null)
    }
}
