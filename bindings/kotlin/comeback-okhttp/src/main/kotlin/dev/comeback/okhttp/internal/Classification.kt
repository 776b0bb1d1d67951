// Says what kind of failure an exception is: by type along causes and suppressed exceptions, then by what the listener heard.
package dev.comeback.okhttp.internal

import dev.comeback.FailureKind
import dev.comeback.driver.FailureTypes
import dev.comeback.driver.Promise
import dev.comeback.driver.everythingBehind
import dev.comeback.driver.okhttp.NotResentException
import dev.comeback.driver.okhttp.isRefused
import dev.comeback.driver.promise
import okhttp3.internal.http2.ConnectionShutdownException
import okhttp3.internal.http2.StreamResetException
import java.io.IOException
import java.io.InterruptedIOException
import java.net.SocketTimeoutException
import java.nio.channels.ClosedByInterruptException
import javax.net.ssl.SSLException

/**
 * The kind of [failure]. Without a [listener] the types alone speak. With one, what it heard of this attempt wins: a type that says "never sent"
 * is not believed once request headers went out, and a failure that the client reported before any did is "never sent" whatever its type.
 */
internal fun failureKind(
    failure: IOException,
    listener: AttemptListener?,
    transports: Set<Class<out Throwable>> = emptySet(),
): FailureKind {
    val byType = TYPES.kindOf(failure, transports)
    if (listener == null || byType in LISTENER_KNOWS_NO_BETTER) return byType
    val causes = causesOf(failure)
    return when {
        listener.bodyThrew(causes) -> {
            FailureKind.REQUEST_BODY
        }

        byType.promise == Promise.PERMANENT -> {
            byType
        }

        listener.neverSent(causes) -> {
            if (byType.promise ==
                Promise.NEVER_SENT
            ) {
                byType
            } else {
                kindBeforeHeaders(everythingBehind(failure).keys)
            }
        }

        // Headers went out, perhaps in an earlier exchange of this attempt: a later refusal says nothing about those.
        listener.mayHaveSent && byType.promise == Promise.NEVER_SENT -> {
            FailureKind.OTHER_IO
        }

        byType == FailureKind.READ_TIMEOUT && listener.requestFailed -> {
            FailureKind.WRITE_TIMEOUT
        }

        else -> {
            byType
        }
    }
}

/** Whether time ended an attempt on a connection. */
internal val FailureKind.isOfTime: Boolean get() = this == FailureKind.READ_TIMEOUT || this == FailureKind.WRITE_TIMEOUT

/** [failure], its cause, and so on; each once. */
internal fun causesOf(failure: Throwable): List<Throwable> {
    val causes = ArrayList<Throwable>(2)
    var next: Throwable? = failure
    while (next != null && causes.none { it === next }) {
        causes += next
        next = next.cause
    }
    return causes
}

/** Whether [failure] is how an interrupt of this thread came out, or came while it was interrupted. */
internal fun isInterrupt(failure: IOException): Boolean =
    Thread.currentThread().isInterrupted ||
        everythingBehind(failure).keys.any {
            it is InterruptedException || it is ClosedByInterruptException || isInterruptByText(it)
        }

/** okio says an interrupt only in words, and the same type is a timeout's. */
private fun isInterruptByText(thrown: Throwable): Boolean =
    thrown.javaClass == InterruptedIOException::class.java && (thrown.message == "interrupted" || thrown.message == "thread interrupted")

private val LISTENER_KNOWS_NO_BETTER = setOf(FailureKind.CERTIFICATE, FailureKind.PINNING, FailureKind.UNLISTED)

private val TYPES =
    FailureTypes(
        clientPackages = listOf("okhttp3.", "okio."),
        isClients = { it is StreamResetException || it is ConnectionShutdownException || it is NotResentException },
        clientKind = ::clientKind,
    )

private fun clientKind(thrown: Throwable): FailureKind? =
    when (thrown) {
        is StreamResetException, is ConnectionShutdownException -> {
            if (isRefused(thrown as IOException)) FailureKind.REFUSED_STREAM else FailureKind.STREAM_RESET
        }

        // An interceptor further in gave it a wrapping of its own.
        is NotResentException -> {
            TYPES.kindOf(thrown.original)
        }

        else -> {
            if (isProxysRefusal(thrown)) FailureKind.PROTOCOL else null
        }
    }

/** A proxy said no to CONNECT, and will again. OkHttp has only words for it. */
private fun isProxysRefusal(thrown: Throwable): Boolean {
    if (thrown.javaClass != IOException::class.java) return false
    val text = thrown.message ?: return false
    return text == "Failed to authenticate with proxy" || text.startsWith("Unexpected response code for CONNECT: 4")
}

private fun kindBeforeHeaders(behind: Set<Throwable>): FailureKind =
    when {
        behind.any { it is SSLException } -> FailureKind.TLS_BROKEN_OFF
        behind.any { it is SocketTimeoutException } -> FailureKind.CONNECT_TIMEOUT
        else -> FailureKind.BEFORE_HEADERS
    }
