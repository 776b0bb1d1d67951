// What is composed with what: the dimensions of the matrix, the cells they make, and those that cannot be.
package dev.comeback.matrix

import dev.comeback.Jitter
import dev.comeback.RetryPolicy

/** What is around the driver. */
internal enum class Outer { NOTHING, RETRY }

/** How a call comes about that is inside a block. */
internal enum class Made {
    /** As the driver's name says, in the block's coroutine. */
    PLAINLY,

    /** The call object is there before the block, which enqueues it. */
    BEFORE,

    /** By the callback of another call that the block enqueued. */
    IN_CALLBACK,

    /** In a `runBlocking` on the block's thread. */
    IN_RUN_BLOCKING,

    /** By the callback of another call that the block enqueued, when the attempt has failed: the block ignores its end. */
    PAST_ITS_END,

    /** In a scope of its own, whose result the block awaits. The layer further in cannot know, and acts too. */
    IN_SCOPE,

    /** Enqueued on a client whose event listener was set after Comeback. The layer further in cannot know, and acts too. */
    UNNOTED,
    ;

    /** The layer inside acts by itself. */
    val isUnknown: Boolean get() = this == IN_SCOPE || this == UNNOTED
}

internal enum class Driver(
    val isKtor: Boolean = false,
    val isOkHttp: Boolean = false,
) {
    /** OkHttp's interceptor, the call executed. */
    INTERCEPTOR(isOkHttp = true),

    /** The same, the call enqueued. */
    ENQUEUED(isOkHttp = true),
    FACTORY(isOkHttp = true),
    KTOR_OKHTTP(isKtor = true, isOkHttp = true),
    KTOR_CIO(isKtor = true),
    CLIENT,
}

/** How the request for a new token ends. */
internal enum class Refresh { OK, REFUSED, RESET, UNAUTHORIZED, TIMEOUT }

/** What an app puts further in than Comeback. */
internal enum class Inner(
    val refresh: Refresh? = null,
) {
    NOTHING,

    /** Reads the body, as the app's own type, and adds a header. */
    SIGNING,

    /** What the client itself offers: OkHttp's `Authenticator`, Ktor's `Auth` with a refresh through the same client. */
    AUTH_OK(Refresh.OK),
    AUTH_REFUSED(Refresh.REFUSED),
    AUTH_RESET(Refresh.RESET),
    AUTH_UNAUTHORIZED(Refresh.UNAUTHORIZED),
    AUTH_TIMEOUT(Refresh.TIMEOUT),

    /** An interceptor or plugin by hand, with a refresh through another client. */
    TOKEN_OK(Refresh.OK),
    TOKEN_REFUSED(Refresh.REFUSED),
    TOKEN_RESET(Refresh.RESET),
    TOKEN_UNAUTHORIZED(Refresh.UNAUTHORIZED),
    TOKEN_TIMEOUT(Refresh.TIMEOUT),

    /** The own chain goes to the server; where it fails another client is asked, whose host refuses. */
    FAILOVER_THEN_OTHER,

    /** Another client goes to the server; where it fails the own chain goes on, whose host refuses. */
    FAILOVER_OTHER_FIRST,

    /** As the two before, but the other client has Comeback too. */
    FAILOVER_THEN_COMEBACK,
    FAILOVER_COMEBACK_FIRST,
    CACHE,
    LOGGING,

    /** A second Comeback further in. */
    SECOND,
    ;

    val isAuth: Boolean get() = name.startsWith("AUTH_")
    val failsToRefresh: Boolean get() = (refresh ?: Refresh.OK) != Refresh.OK
    val startsWithOther: Boolean get() = this == FAILOVER_OTHER_FIRST || this == FAILOVER_COMEBACK_FIRST
    val otherHasComeback: Boolean get() = this == FAILOVER_THEN_COMEBACK || this == FAILOVER_COMEBACK_FIRST
    val isFailover: Boolean get() = startsWithOther || this == FAILOVER_THEN_OTHER || this == FAILOVER_THEN_COMEBACK

    /** Adds nothing to what is sent, and takes nothing away. */
    val isTransparent: Boolean get() = this in setOf(NOTHING, SIGNING, CACHE, LOGGING, SECOND)
}

internal enum class Send(
    val method: String,
) {
    GET("GET"),
    POST("POST"),

    /** With a key of the caller's. */
    POST_KEYED("POST"),

    /** The policy makes a key. */
    POST_MADE("POST"),

    /** With the key that the attempt of a `retry { }` gives. */
    POST_ATTEMPT_KEY("POST"),
}

/** What the server does to each request that has no other answer. */
internal enum class Fault(
    val status: Int? = null,
) {
    OK(200),
    STATUS_408(408),
    STATUS_421(421),
    STATUS_503(503),

    /** With `Retry-After: 0`. */
    STATUS_503_NOW(503),

    /** The connection is reset once the request's first line was read. */
    RESET_BEFORE,

    /** The connection is reset once the request was read. */
    RESET_AFTER,
    REFUSED,

    /** A 200, half of its body, a reset. */
    HEAD_THEN_RESET,

    /** The answer comes after the attempt's time. */
    LATE,

    /** The request is read from a pooled connection, which then ends without an answer; and so do the fresh ones. */
    DROPPED,

    /** There is no valid token, so the answer is 401: for a refresh that fails. */
    UNAUTHORIZED(401),
}

internal enum class Preset(
    private val base: RetryPolicy,
    val maxAttempts: Int,
) {
    DEFAULT(RetryPolicy.DEFAULT, 4),
    READ(RetryPolicy.READ, 5),
    PAYMENT(RetryPolicy.PAYMENT, 3),
    BATCH(RetryPolicy.BATCH, 8),
    ;

    /** Whether a late answer is cut off by the policy; else by the client's own timeout. */
    val limitsAttempts: Boolean get() = this == READ || this == PAYMENT

    /** Nothing is slept through: each wait is a millisecond. */
    private fun quick(
        makesKey: Boolean,
        limitsAttempts: Boolean,
    ) = RetryPolicy(base) {
        baseMillis = 1
        capMillis = 1
        factor = 1.0
        jitter = Jitter.NONE
        if (makesKey) makeKey = true
        if (limitsAttempts) attemptTimeoutMillis = LATE_LIMIT_MILLIS
    }

    private val policies = List(4) { quick(makesKey = it and 1 != 0, limitsAttempts = it and 2 != 0) }

    fun policy(
        makesKey: Boolean,
        isLate: Boolean,
    ): RetryPolicy = policies[(if (makesKey) 1 else 0) + (if (isLate && limitsAttempts) 2 else 0)]
}

/** How long an attempt may take where the answer comes late. */
internal const val LATE_LIMIT_MILLIS = 150L

internal data class Cell(
    val outer: Outer,
    val driver: Driver,
    val inner: Inner,
    val send: Send,
    val fault: Fault,
    val preset: Preset,
    val made: Made = Made.PLAINLY,
) {
    val name: String =
        listOfNotNull(outer, driver, inner, send, fault, preset, made.takeIf { it != Made.PLAINLY })
            .joinToString("/") { it.name.lowercase().replace('_', '-') }

    val policy: RetryPolicy get() = preset.policy(makesKey = send == Send.POST_MADE, isLate = fault == Fault.LATE)

    /** Whether the request may go again although it may have arrived. A key that is made inside a block is another one on each of its attempts. */
    val isRepeatable: Boolean
        get() =
            when (send) {
                Send.GET, Send.POST_KEYED, Send.POST_ATTEMPT_KEY -> true
                Send.POST -> false
                Send.POST_MADE -> outer == Outer.NOTHING
            }

    /** Beneath the policy, where a pooled connection broke. A key is enough for the single request, though not for the block around it. */
    val clientMayResend: Boolean get() = preset != Preset.PAYMENT && driver.isOkHttp && send != Send.POST

    /** The block that ignores its end is cut by its limit; else it fails by itself. */
    val isCut: Boolean get() = made == Made.PAST_ITS_END && fault == Fault.LATE && preset.limitsAttempts

    val carriesKey: Boolean get() = send != Send.GET && send != Send.POST

    override fun toString(): String = name
}

/** Why a driver cannot have this further in; null if it can. */
internal fun impossible(
    driver: Driver,
    inner: Inner,
): String? =
    when {
        driver == Driver.CLIENT && inner != Inner.NOTHING -> "the client takes no interceptors: its retries run inside the native library"
        else -> null
    }

/** What such a failure leaves behind is an exception. An error status does not say by itself that a layer gave it up. */
private val EXCEPTIONS = setOf(Fault.OK, Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.REFUSED, Fault.DROPPED)

/** Why a call cannot come about in this way, or nothing is learnt from it; null if it can. */
private fun unmakeable(cell: Cell): String? =
    when {
        cell.made == Made.PLAINLY -> {
            null
        }

        cell.outer != Outer.RETRY -> {
            "there is no block to be inside of"
        }

        cell.inner != Inner.NOTHING -> {
            "what is further in than the call does not know how it was made"
        }

        cell.made == Made.BEFORE || cell.made == Made.IN_CALLBACK -> {
            "only OkHttp's calls are objects, and are enqueued".takeIf {
                cell.driver != Driver.ENQUEUED && cell.driver != Driver.FACTORY
            } ?: "before the block there is no attempt's key".takeIf { cell.made == Made.BEFORE && cell.send == Send.POST_ATTEMPT_KEY }
        }

        cell.made == Made.UNNOTED -> {
            "only the interceptor needs the client's listener".takeIf { cell.driver != Driver.ENQUEUED }
        }

        cell.made == Made.IN_SCOPE -> {
            "that a status was given up in a scope of its own nobody can know".takeIf { cell.fault !in EXCEPTIONS }
        }

        else -> {
            null
        }
    }

/** Why these do not go together; null if they do. */
private fun senseless(cell: Cell): String? =
    when {
        unmakeable(cell) != null -> unmakeable(cell)

        cell.send == Send.POST_ATTEMPT_KEY && cell.outer != Outer.RETRY -> "only a block has an attempt's key"

        cell.fault == Fault.UNAUTHORIZED && !cell.inner.failsToRefresh -> "401 is for a refresh that fails"

        cell.fault != Fault.UNAUTHORIZED && cell.inner.failsToRefresh -> "without a token there is no other answer than 401"

        cell.inner.startsWithOther && cell.fault == Fault.DROPPED -> "the pooled connection is the own chain's, which is asked second"

        // The other client gets as far as the server or the own chain does; if neither does nothing can arrive.
        cell.inner.isFailover && cell.fault == Fault.REFUSED -> "nothing is asked that could answer"

        else -> null
    }

internal fun allCells(): List<Cell> {
    val cells = ArrayList<Cell>()
    for (driver in Driver.entries) {
        for (inner in Inner.entries.filter { impossible(driver, it) == null }) {
            for (outer in Outer.entries) {
                for (send in Send.entries) {
                    for (fault in Fault.entries) {
                        for (preset in Preset.entries) {
                            for (made in Made.entries) cells += Cell(outer, driver, inner, send, fault, preset, made)
                        }
                    }
                }
            }
        }
    }
    return cells.filter { senseless(it) == null }
}
