// How long the platform keeps a failed name look-up: asking again earlier would ask nobody.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import java.security.Security
import java.util.concurrent.TimeUnit.SECONDS

/**
 * The platform's own resolver.
 *
 * @suppress
 */
@InternalComebackApi
public object FailedLookUps {
    private val isAndroid = System.getProperty("java.vm.name") == "Dalvik"
    private const val JVM_DEFAULT_SECONDS = 10

    /** How long a failed look-up stays cached: 2 s on Android, and what the JVM was told elsewhere. In nanoseconds. */
    public fun cachedNanos(): Long =
        if (isAndroid) {
            SECONDS.toNanos(2)
        } else {
            cachedNanos(Security.getProperty("networkaddress.cache.negative.ttl") ?: System.getProperty("sun.net.inetaddr.negative.ttl"))
        }

    /** [seconds] as the JVM reads it: below 0 means for ever. */
    public fun cachedNanos(seconds: String?): Long {
        val parsed = seconds?.trim()?.toIntOrNull() ?: JVM_DEFAULT_SECONDS
        return if (parsed < 0) Long.MAX_VALUE else SECONDS.toNanos(parsed.toLong())
    }
}
