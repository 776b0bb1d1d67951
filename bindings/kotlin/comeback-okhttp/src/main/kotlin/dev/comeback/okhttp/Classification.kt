// Says what kind of failure an exception is: by type along causes and suppressed exceptions, then by what the witness heard.
package dev.comeback.okhttp

import dev.comeback.FailureKind
import okhttp3.internal.http2.ConnectionShutdownException
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import java.io.CharConversionException
import java.io.EOFException
import java.io.FileNotFoundException
import java.io.IOException
import java.io.InterruptedIOException
import java.io.ObjectStreamException
import java.io.UTFDataFormatException
import java.io.UnsupportedEncodingException
import java.net.BindException
import java.net.ConnectException
import java.net.MalformedURLException
import java.net.NoRouteToHostException
import java.net.ProtocolException
import java.net.SocketException
import java.net.SocketTimeoutException
import java.net.UnknownHostException
import java.net.UnknownServiceException
import java.nio.channels.ClosedByInterruptException
import java.nio.charset.CharacterCodingException
import java.security.cert.CertPathBuilderException
import java.security.cert.CertPathValidatorException
import java.security.cert.CertificateException
import java.util.Collections
import java.util.IdentityHashMap
import javax.net.ssl.SSLException
import javax.net.ssl.SSLHandshakeException
import javax.net.ssl.SSLPeerUnverifiedException

/**
 * The kind of [failure]. Without a [witness] the types alone speak. With one, what it heard of this attempt wins: a type that says "never sent"
 * is not believed once request headers went out, and a failure that the client reported before any did is "never sent" whatever its type.
 */
internal fun failureKind(
    failure: IOException,
    witness: AttemptWitness?,
): FailureKind {
    val behind = everythingBehind(failure)
    certificateFault(behind)?.let { return it }
    if (behind.any { carriesAppMeaning(it.key, isSuppressed = it.value) }) return FailureKind.UNLISTED
    if (witness != null && witness.bodyThrew(behind.keys)) return FailureKind.REQUEST_BODY

    val byType = kindByType(failure, seen()) ?: FailureKind.OTHER_IO
    return when {
        witness == null || rank(byType) == PERMANENT -> byType

        witness.neverSent(behind.keys) -> if (rank(byType) == NEVER_SENT) byType else kindBeforeHeaders(behind.keys)

        // Headers went out, perhaps in an earlier exchange of this attempt: a later refusal says nothing about those.
        witness.mayHaveSent && rank(byType) == NEVER_SENT -> FailureKind.OTHER_IO

        byType == FailureKind.READ_TIMEOUT && witness.requestFailed -> FailureKind.WRITE_TIMEOUT

        else -> byType
    }
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

/** [failure] and all its causes and suppressed exceptions, each once; true for those that came in as suppressed. */
private fun everythingBehind(failure: Throwable): Map<Throwable, Boolean> {
    val found = IdentityHashMap<Throwable, Boolean>()
    val open = ArrayDeque<Pair<Throwable, Boolean>>()
    open.add(failure to false)
    while (open.isNotEmpty()) {
        val (thrown, isSuppressed) = open.removeFirst()
        if (found.containsKey(thrown)) continue
        found[thrown] = isSuppressed
        thrown.cause?.let { open.add(it to isSuppressed) }
        thrown.suppressed.forEach { open.add(it to true) }
    }
    return found
}

private fun certificateFault(behind: Map<Throwable, Boolean>): FailureKind? {
    for (thrown in behind.keys) {
        when (thrown) {
            is SSLPeerUnverifiedException -> {
                // Only the text tells a pin from a host name.
                val isPin = thrown.message?.startsWith("Certificate pinning failure") == true
                return if (isPin) FailureKind.PINNING else FailureKind.CERTIFICATE
            }

            is CertificateException, is CertPathValidatorException, is CertPathBuilderException -> {
                return FailureKind.CERTIFICATE
            }

            // The server refused ours; its alert arrives as text only.
            is SSLException -> {
                if (isCertificateAlert(thrown.message)) return FailureKind.CERTIFICATE
            }
        }
    }
    return null
}

private fun isCertificateAlert(message: String?): Boolean {
    val text = message?.lowercase() ?: return false
    return "alert" in text && ("certificate" in text || "unknown_ca" in text)
}

/**
 * An exception of neither the platform nor the client has a meaning that only the app knows. As a suppressed exception only an I/O error does:
 * tracing tools and Comeback itself attach others.
 */
private fun carriesAppMeaning(
    thrown: Throwable,
    isSuppressed: Boolean,
): Boolean = !isPlatformOrClient(thrown) && (!isSuppressed || thrown is IOException)

// By type where shrinking an app may have renamed the class, by name where it cannot have.
private fun isPlatformOrClient(thrown: Throwable): Boolean =
    thrown is StreamResetException ||
        thrown is ConnectionShutdownException ||
        thrown is kotlin.io.FileSystemException ||
        thrown.javaClass.name.let { name -> PLATFORM_AND_CLIENT.any(name::startsWith) }

private val PLATFORM_AND_CLIENT =
    arrayOf(
        "java.",
        "javax.",
        "sun.",
        "com.sun.",
        "jdk.",
        "android.",
        "com.android.",
        "dalvik.",
        "libcore.",
        "kotlin.",
        "okhttp3.",
        "okio.",
        // TLS providers that OkHttp knows.
        "org.conscrypt.",
        "com.google.android.gms.org.conscrypt.",
        "org.bouncycastle.",
        "org.openjsse.",
    )

/**
 * What the type of [thrown] says, else what its cause says; null if neither says anything. A suppressed exception is a failure of its own: the one
 * that promises least counts. A type that speaks is not asked for its cause, which only explains it.
 */
private fun kindByType(
    thrown: Throwable,
    seen: MutableSet<Throwable>,
): FailureKind? {
    if (!seen.add(thrown)) return null
    var kind = ownKind(thrown) ?: thrown.cause?.let { kindByType(it, seen) }
    for (suppressed in thrown.suppressed) {
        if (suppressed !is IOException) continue
        val other = kindByType(suppressed, seen) ?: FailureKind.OTHER_IO
        if (kind == null || rank(other) > rank(kind)) kind = other
    }
    return kind
}

private fun seen(): MutableSet<Throwable> = Collections.newSetFromMap(IdentityHashMap())

private fun ownKind(thrown: Throwable): FailureKind? =
    when (thrown) {
        is UnknownHostException -> {
            FailureKind.DNS
        }

        is NoRouteToHostException, is BindException -> {
            FailureKind.CONNECT_UNREACHABLE
        }

        is ConnectException -> {
            connectKind(thrown)
        }

        is SocketException -> {
            if (isReset(thrown.message)) FailureKind.RESET else null
        }

        // Of a connect or of a read: only the witness knows.
        is InterruptedIOException -> {
            FailureKind.READ_TIMEOUT
        }

        is StreamResetException -> {
            if (thrown.errorCode ==
                ErrorCode.REFUSED_STREAM
            ) {
                FailureKind.REFUSED_STREAM
            } else {
                FailureKind.STREAM_RESET
            }
        }

        is ConnectionShutdownException -> {
            FailureKind.REFUSED_STREAM
        }

        is SSLHandshakeException -> {
            FailureKind.TLS_BROKEN_OFF
        }

        is EOFException -> {
            FailureKind.UNEXPECTED_END
        }

        // OkHttp has no type of its own for a body that ends too early.
        is ProtocolException -> {
            if (thrown.message == "unexpected end of stream") FailureKind.UNEXPECTED_END else FailureKind.PROTOCOL
        }

        is UnknownServiceException, is MalformedURLException -> {
            FailureKind.PROTOCOL
        }

        is FileNotFoundException, is kotlin.io.FileSystemException -> {
            FailureKind.LOCAL_FILE
        }

        is ObjectStreamException, is CharacterCodingException, is CharConversionException, is UTFDataFormatException,
        is UnsupportedEncodingException,
        -> {
            FailureKind.SERIALISATION
        }

        else -> {
            if (isFileSystemException(thrown.javaClass)) FailureKind.LOCAL_FILE else null
        }
    }

/** All are "never sent"; the text only names them better. */
private fun connectKind(thrown: ConnectException): FailureKind {
    val text = generateSequence<Throwable>(thrown) { it.cause }.take(CAUSES_READ).joinToString { it.message.orEmpty() }
    return when {
        "ENETUNREACH" in text || "EHOSTUNREACH" in text || "unreachable" in text -> FailureKind.CONNECT_UNREACHABLE
        "ETIMEDOUT" in text || "timed out" in text -> FailureKind.CONNECT_TIMEOUT
        else -> FailureKind.CONNECT_REFUSED
    }
}

private const val CAUSES_READ = 4

/** A name for the report; a reset and any other error of a socket are treated alike. */
private fun isReset(message: String?): Boolean = message != null && RESETS.any { it in message }

private val RESETS = arrayOf("reset", "abort", "Broken pipe")

/** Android has the type from API 26 on only, so nothing may refer to it. */
private fun isFileSystemException(type: Class<*>): Boolean =
    generateSequence<Class<*>>(type) { it.superclass }.any { it.name == "java.nio.file.FileSystemException" }

private fun kindBeforeHeaders(behind: Set<Throwable>): FailureKind =
    when {
        behind.any { it is SSLException } -> FailureKind.TLS_BROKEN_OFF
        behind.any { it is SocketTimeoutException } -> FailureKind.CONNECT_TIMEOUT
        else -> FailureKind.BEFORE_HEADERS
    }

private const val NEVER_SENT = 0
private const val IN_DOUBT = 1
private const val PERMANENT = 2

/** How much a kind promises; the core alone decides what follows from it. Of two failures of one attempt the higher rank speaks. */
private fun rank(kind: FailureKind): Int =
    when (kind) {
        FailureKind.DNS, FailureKind.CONNECT_REFUSED, FailureKind.CONNECT_UNREACHABLE, FailureKind.CONNECT_TIMEOUT,
        FailureKind.TLS_BROKEN_OFF, FailureKind.REFUSED_STREAM, FailureKind.BEFORE_HEADERS,
        -> NEVER_SENT

        FailureKind.READ_TIMEOUT, FailureKind.WRITE_TIMEOUT, FailureKind.RESET, FailureKind.UNEXPECTED_END, FailureKind.STREAM_RESET,
        FailureKind.ATTEMPT_TIMEOUT, FailureKind.OTHER_IO,
        -> IN_DOUBT

        FailureKind.CERTIFICATE, FailureKind.PINNING, FailureKind.PROTOCOL, FailureKind.LOCAL_FILE, FailureKind.SERIALISATION,
        FailureKind.REQUEST_BODY, FailureKind.UNLISTED,
        -> PERMANENT
    }
