// How long a failed name look-up stays cached below OkHttp: asking again earlier would ask nobody.
package dev.comeback.okhttp

import dev.comeback.FailedLookUps
import okhttp3.Dns

/** Any resolver but the system's is taken to ask each time. */
internal fun failedLookUpNanos(dns: Dns): Long = if (dns === Dns.SYSTEM) FailedLookUps.cachedNanos() else 0
