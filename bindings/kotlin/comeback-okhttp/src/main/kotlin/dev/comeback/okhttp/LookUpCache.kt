// How long a failed name look-up stays cached below OkHttp: asking again earlier would ask nobody.
package dev.comeback.okhttp

import okhttp3.Dns
import java.security.Security
import java.util.concurrent.TimeUnit.SECONDS

/** For the system's resolver 2 s on Android, and what the JVM was told elsewhere. Any other resolver is taken to ask each time. */
internal fun failedLookUpNanos(dns: Dns): Long =
    when {
        dns !== Dns.SYSTEM -> {
            0
        }

        IS_ANDROID -> {
            SECONDS.toNanos(2)
        }

        else -> {
            negativeCacheNanos(
                Security.getProperty("networkaddress.cache.negative.ttl") ?: System.getProperty("sun.net.inetaddr.negative.ttl"),
            )
        }
    }

/** [seconds] as the JVM reads it: below 0 means for ever. */
internal fun negativeCacheNanos(seconds: String?): Long {
    val parsed = seconds?.trim()?.toIntOrNull() ?: JVM_DEFAULT_SECONDS
    return if (parsed < 0) Long.MAX_VALUE else SECONDS.toNanos(parsed.toLong())
}

private const val JVM_DEFAULT_SECONDS = 10

private val IS_ANDROID = System.getProperty("java.vm.name") == "Dalvik"
