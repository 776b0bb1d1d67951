// A failure in a form after which OkHttp does not send again by itself.
package dev.comeback.driver.okhttp

import dev.comeback.InternalComebackApi
import okhttp3.internal.http2.ConnectionShutdownException
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import java.io.IOException
import java.net.ProtocolException

/**
 * Stands for [original] between the network interceptors and Comeback. OkHttp never sends again after a protocol error. Its own switch for re-sends would also
 * keep it from connecting with an older TLS version.
 *
 * @suppress
 */
@InternalComebackApi
public class NotResentException(
    public val original: IOException,
) : ProtocolException(original.message) {
    init {
        initCause(original)
    }

    /** It has none: [original] has its own. */
    override fun fillInStackTrace(): Throwable = this
}

/**
 * As it was before it became a [NotResentException], with what OkHttp has added to it since.
 *
 * @suppress
 */
@InternalComebackApi
public fun IOException.asThrown(): IOException {
    if (this !is NotResentException) return this
    for (earlier in suppressed) if (earlier !== original) original.addSuppressed(earlier)
    return original
}

/**
 * Refused before the server looked, or on a connection that already took no more: the exchange reached nobody.
 *
 * @suppress
 */
@InternalComebackApi
public fun isRefused(failure: IOException): Boolean =
    failure is ConnectionShutdownException || (failure is StreamResetException && failure.errorCode == ErrorCode.REFUSED_STREAM)
