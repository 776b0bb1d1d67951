// How long the platform below OkHttp remembers a failed look-up. Until then a new look-up would fail without asking anybody.
package dev.comeback.okhttp.internal

import dev.comeback.driver.FailedLookUps
import okhttp3.Dns

/** Any resolver other than the system's is assumed to ask each time. */
internal fun failedLookUpNanos(dns: Dns): Long = if (dns === Dns.SYSTEM) FailedLookUps.cachedNanos() else 0
