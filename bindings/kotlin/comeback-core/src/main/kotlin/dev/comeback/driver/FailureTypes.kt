// Says what kind of failure an exception is, by type along causes and suppressed exceptions; alike in every adapter.
package dev.comeback.driver

import dev.comeback.Comeback
import dev.comeback.FailureKind
import dev.comeback.InternalComebackApi
import dev.comeback.ffi.compiledClass
import dev.comeback.internal.isTransports
import dev.comeback.internal.unwrapped
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
import java.net.UnknownHostException
import java.net.UnknownServiceException
import java.nio.channels.UnresolvedAddressException
import java.nio.charset.CharacterCodingException
import java.security.cert.CertPathBuilderException
import java.security.cert.CertPathValidatorException
import java.security.cert.CertificateException
import java.util.Collections
import java.util.IdentityHashMap
import javax.net.ssl.SSLException
import javax.net.ssl.SSLHandshakeException
import javax.net.ssl.SSLPeerUnverifiedException
import dev.comeback.ffi.FailureKind as CoreFailureKind
import dev.comeback.ffi.OutcomeClass as CoreOutcomeClass

/**
 * What the types of exceptions say: the platform's, and those of one HTTP client. Message texts are read only where a type says nothing.
 *
 * @param clientPackages packages of the client, each with its last dot. An exception of neither these nor the platform has a meaning that only the app
 * knows, and is permanent
 * @param isClients the same by type, for classes that a shrinker may have renamed
 * @param clientKind what one of the client's own exceptions says; it is asked before the platform's types, so that a subclass can say more
 * @suppress
 */
@InternalComebackApi
public class FailureTypes(
    private val clientPackages: List<String>,
    private val isClients: (Throwable) -> Boolean = { false },
    private val clientKind: (Throwable) -> FailureKind? = { null },
) {
    /** The kind of [failure], for all that its types say. [transports] are [Comeback.transportExceptions]. */
    public fun kindOf(
        failure: Throwable,
        transports: Set<Class<out Throwable>> = emptySet(),
    ): FailureKind {
        (failure as? KnownFailure)?.failure?.let { return it }
        val behind = everythingBehind(failure)
        certificateFault(behind.keys)?.let { return it }
        if (behind.any { carriesAppMeaning(it.key, isSuppressed = it.value, transports) }) return FailureKind.UNLISTED
        return kindByType(failure, transports, seen()) ?: if (isIo(failure, transports)) FailureKind.OTHER_IO else FailureKind.UNLISTED
    }

    /** Whether [thrown] is, or only wraps, an I/O error of which nobody says more. */
    private fun isIo(
        thrown: Throwable,
        transports: Set<Class<out Throwable>>,
    ): Boolean = unwrapped(thrown, transports).let { it is IOException || isTransports(it, transports) }

    /**
     * An exception of neither the platform nor the client has a meaning that only the app knows. As a suppressed exception only an I/O error does:
     * tracing tools and Comeback itself attach others.
     */
    private fun carriesAppMeaning(
        thrown: Throwable,
        isSuppressed: Boolean,
        transports: Set<Class<out Throwable>>,
    ): Boolean = !isPlatformOrClient(thrown) && !isTransports(thrown, transports) && (!isSuppressed || thrown is IOException)

    // By type where shrinking an app may have renamed the class, by name where it cannot have.
    private fun isPlatformOrClient(thrown: Throwable): Boolean =
        thrown is kotlin.io.FileSystemException ||
            isClients(thrown) ||
            thrown.javaClass.name.let { name -> PLATFORM.any(name::startsWith) || clientPackages.any(name::startsWith) }

    /**
     * What the type of [thrown] says, else what its cause says; null if neither says anything. A suppressed exception is a failure of its own: the
     * one that promises least counts. A type that speaks is not asked for its cause, which only explains it.
     */
    private fun kindByType(
        thrown: Throwable,
        transports: Set<Class<out Throwable>>,
        seen: MutableSet<Throwable>,
    ): FailureKind? {
        if (!seen.add(thrown)) return null
        var kind = clientKind(thrown) ?: platformKind(thrown) ?: thrown.cause?.let { kindByType(it, transports, seen) }
        for (suppressed in thrown.suppressed) {
            if (!isIo(suppressed, transports)) continue
            val other = kindByType(suppressed, transports, seen) ?: FailureKind.OTHER_IO
            if (kind == null || other.promise > kind.promise) kind = other
        }
        return kind
    }

    private fun seen(): MutableSet<Throwable> = Collections.newSetFromMap(IdentityHashMap())

    private companion object {
        val PLATFORM =
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
                // TLS providers that take the platform's place.
                "org.conscrypt.",
                "com.google.android.gms.org.conscrypt.",
                "org.bouncycastle.",
                "org.openjsse.",
            )
    }
}

/**
 * [failure] and all its causes and suppressed exceptions, each once; true for those that came in as suppressed.
 *
 * @suppress
 */
@InternalComebackApi
public fun everythingBehind(failure: Throwable): Map<Throwable, Boolean> {
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

private fun certificateFault(behind: Set<Throwable>): FailureKind? {
    for (thrown in behind) {
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

private fun platformKind(thrown: Throwable): FailureKind? =
    when (thrown) {
        is UnknownHostException, is UnresolvedAddressException -> {
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
            kindByName(thrown)
        }
    }

/** All are "never sent"; the text only names them better. */
private fun connectKind(thrown: ConnectException): FailureKind {
    val chain = generateSequence<Throwable>(thrown) { it.cause }.take(CAUSES_READ).toList()
    val text = chain.joinToString { it.message.orEmpty() }
    return when {
        // How java.net.http says it.
        chain.any { it is UnresolvedAddressException } -> FailureKind.DNS

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

private fun kindByName(thrown: Throwable): FailureKind? =
    when {
        isFileSystemException(thrown.javaClass) -> FailureKind.LOCAL_FILE

        // Java 11 has them, Android has not.
        thrown.javaClass.name == "java.net.http.HttpConnectTimeoutException" -> FailureKind.CONNECT_TIMEOUT

        thrown.javaClass.name == "java.net.http.HttpTimeoutException" -> FailureKind.READ_TIMEOUT

        thrown.javaClass == IOException::class.java && isFullDisk(thrown.message) -> FailureKind.LOCAL_FILE

        else -> null
    }

/** The platform has no type for a file that cannot be written, for instance a cache's. */
private fun isFullDisk(message: String?): Boolean = message != null && FULL_DISKS.any { it in message }

private val FULL_DISKS = arrayOf("No space left on device", "ENOSPC", "EDQUOT", "Read-only file system", "EROFS")

/**
 * How much a kind promises about what was sent; the core says so, and decides what follows. Of two failures of one attempt the one that promises less
 * counts.
 *
 * @suppress
 */
@InternalComebackApi
public enum class Promise {
    /** Nothing was sent. */
    NEVER_SENT,

    /** Nothing. */
    IN_DOUBT,

    /** It will happen again. */
    PERMANENT,
}

/**
 * What this kind promises, so that the worse of two failures can be told.
 *
 * @suppress
 */
@InternalComebackApi
public val FailureKind.promise: Promise
    get() = PROMISES[ordinal]

/** As Rust has it: no native call is made for it. */
private val PROMISES =
    Array(FailureKind.entries.size) { ordinal ->
        when (val compiled = CoreFailureKind.valueOf(FailureKind.entries[ordinal].name).compiledClass) {
            CoreOutcomeClass.NEVER_SENT -> Promise.NEVER_SENT
            CoreOutcomeClass.IN_DOUBT -> Promise.IN_DOUBT
            CoreOutcomeClass.PERMANENT_FAILURE -> Promise.PERMANENT
            else -> error("no class of a failure: $compiled")
        }
    }

/**
 * An exception that knows the kind of its failure: another of Comeback's libraries has judged it.
 *
 * @suppress
 */
@InternalComebackApi
public interface KnownFailure {
    /** Null if it was no failure of an attempt. */
    public val failure: FailureKind?
}
