// Keeps OkHttp from sending again by itself what must not go twice, and from nothing else: other routes, other TLS versions and refused streams stay its own.
package dev.comeback.okhttp.internal

import dev.comeback.driver.okhttp.NotResentException
import dev.comeback.driver.okhttp.isRefused
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
