// Puts an attempt's limits on the chain that makes it.
package dev.comeback.driver.okhttp

import dev.comeback.InternalComebackApi
import dev.comeback.driver.shortened
import dev.comeback.driver.shorter
import okhttp3.Interceptor
import java.util.concurrent.TimeUnit.MILLISECONDS

/**
 * This chain with the client's timeouts shortened to [inactivityNanos], and its connect timeout also to [connectNanos]. The chain itself if nothing gets shorter.
 *
 * @suppress
 */
@InternalComebackApi
public fun Interceptor.Chain.limitedTo(
    inactivityNanos: Long?,
    connectNanos: Long?,
): Interceptor.Chain {
    var chain = this
    shortened(connectTimeoutMillis(), shorter(inactivityNanos, connectNanos))?.let { chain = chain.withConnectTimeout(it, MILLISECONDS) }
    shortened(readTimeoutMillis(), inactivityNanos)?.let { chain = chain.withReadTimeout(it, MILLISECONDS) }
    shortened(writeTimeoutMillis(), inactivityNanos)?.let { chain = chain.withWriteTimeout(it, MILLISECONDS) }
    return chain
}
