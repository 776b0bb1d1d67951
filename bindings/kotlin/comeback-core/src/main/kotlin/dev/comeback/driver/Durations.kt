// Sums with limits, which may be none.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/** @suppress */
@InternalComebackApi
public const val NANOS_PER_MILLI: Long = 1_000_000

/**
 * The shorter of two limits; null means no limit.
 *
 * @suppress
 */
@InternalComebackApi
public fun shorter(
    one: Long?,
    other: Long?,
): Long? = if (one == null || other == null) one ?: other else minOf(one, other)

/**
 * Whole milliseconds that are not shorter than [nanos].
 *
 * @suppress
 */
@InternalComebackApi
public fun roundedUpToMillis(nanos: Long): Long = nanos / NANOS_PER_MILLI + if (nanos % NANOS_PER_MILLI > 0) 1 else 0

/**
 * [limitNanos] in whole milliseconds, at least one, if that is shorter than a client's timeout of [millis]; 0 is OkHttp's word for no timeout. Null: the
 * client's own stays.
 *
 * @suppress
 */
@InternalComebackApi
public fun shortened(
    millis: Int,
    limitNanos: Long?,
): Int? {
    if (limitNanos == null) return null
    val limit = roundedUpToMillis(limitNanos).coerceIn(1, Int.MAX_VALUE.toLong()).toInt()
    return limit.takeIf { millis == 0 || it < millis }
}
