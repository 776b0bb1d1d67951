// Keeps OkHttp from sending again by itself what must not go twice, and from nothing else: other routes, other TLS versions and refused streams stay its own.
package dev.comeback.okhttp.internal

import okhttp3.internal.http2.ConnectionShutdownException
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import java.io.IOException
import java.net.ProtocolException

/** What OkHttp may send again by itself in an attempt, once it has a connection. */
internal enum class Resends {
    ANY,

    /** Only what reached nobody. */
    REFUSED,

    /** Nothing: the app's network interceptors run again with it, and may have sent something elsewhere. */
    NONE,
    ;

    /** [failure] of an exchange, as OkHttp is to see it. */
    fun seen(failure: IOException): IOException =
        if (this == ANY || failure is ProtocolException || (this == REFUSED && isRefused(failure))) failure else NotResentException(failure)
}

/**
 * Stands for [original] between the network interceptors and Comeback. OkHttp never sends again after a protocol error. Its own switch for re-sends would also
 * keep it from connecting with an older TLS version.
 */
internal class NotResentException(
    val original: IOException,
) : ProtocolException(original.message) {
    init {
        initCause(original)
    }
}

/** As it was before [Resends.seen], with what OkHttp has added to it since. */
internal fun IOException.asThrown(): IOException {
    if (this !is NotResentException) return this
    for (earlier in suppressed) if (earlier !== original) original.addSuppressed(earlier)
    return original
}

/** Refused before the server looked, or on a connection that already took no more: the exchange reached nobody. */
internal fun isRefused(failure: IOException): Boolean =
    failure is ConnectionShutdownException || (failure is StreamResetException && failure.errorCode == ErrorCode.REFUSED_STREAM)
