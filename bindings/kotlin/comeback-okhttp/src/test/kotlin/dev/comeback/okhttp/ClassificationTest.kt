// By type along causes and suppressed exceptions, whatever the messages say or do not say.
package dev.comeback.okhttp

import dev.comeback.FailureKind
import dev.comeback.RetryReport
import dev.comeback.RetryStoppedException
import dev.comeback.StopReason
import dev.comeback.driver.FailedLookUps
import dev.comeback.okhttp.internal.failureKind
import dev.comeback.okhttp.internal.isInterrupt
import okhttp3.internal.http2.ConnectionShutdownException
import okhttp3.internal.http2.ErrorCode
import okhttp3.internal.http2.StreamResetException
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.TestFactory
import java.io.EOFException
import java.io.FileNotFoundException
import java.io.IOException
import java.io.InterruptedIOException
import java.io.InvalidObjectException
import java.net.BindException
import java.net.ConnectException
import java.net.NoRouteToHostException
import java.net.ProtocolException
import java.net.SocketException
import java.net.SocketTimeoutException
import java.net.UnknownHostException
import java.net.UnknownServiceException
import java.nio.channels.ClosedByInterruptException
import java.nio.charset.MalformedInputException
import java.nio.file.NoSuchFileException
import java.security.cert.CertPathValidatorException
import java.security.cert.CertificateException
import java.util.concurrent.ExecutionException
import javax.net.ssl.SSLException
import javax.net.ssl.SSLHandshakeException
import javax.net.ssl.SSLPeerUnverifiedException
import kotlin.test.AfterTest
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertTrue

internal class ClassificationTest {
    private class SessionExpired : IOException()

    private class Domain : RuntimeException()

    @AfterTest
    fun clearInterrupt() {
        Thread.interrupted()
    }

    private fun IOException.dueTo(cause: Throwable) = apply { initCause(cause) }

    private fun IOException.with(vararg suppressed: Throwable) = apply { suppressed.forEach(::addSuppressed) }

    private val certificate = CertPathValidatorException()

    @TestFactory
    fun `kinds by type, with null messages throughout`(): List<DynamicTest> =
        listOf(
            UnknownHostException() to FailureKind.DNS,
            ConnectException() to FailureKind.CONNECT_REFUSED,
            NoRouteToHostException() to FailureKind.CONNECT_UNREACHABLE,
            BindException() to FailureKind.CONNECT_UNREACHABLE,
            SocketTimeoutException() to FailureKind.READ_TIMEOUT,
            InterruptedIOException() to FailureKind.READ_TIMEOUT,
            SocketException() to FailureKind.OTHER_IO,
            EOFException() to FailureKind.UNEXPECTED_END,
            IOException() to FailureKind.OTHER_IO,
            SSLHandshakeException(null) to FailureKind.TLS_BROKEN_OFF,
            SSLException(null as String?) to FailureKind.OTHER_IO,
            SSLPeerUnverifiedException(null) to FailureKind.CERTIFICATE,
            ProtocolException() to FailureKind.PROTOCOL,
            UnknownServiceException() to FailureKind.PROTOCOL,
            FileNotFoundException() to FailureKind.LOCAL_FILE,
            NoSuchFileException(null) to FailureKind.LOCAL_FILE,
            InvalidObjectException(null) to FailureKind.SERIALISATION,
            MalformedInputException(1) to FailureKind.SERIALISATION,
            StreamResetException(ErrorCode.REFUSED_STREAM) to FailureKind.REFUSED_STREAM,
            StreamResetException(ErrorCode.CANCEL) to FailureKind.STREAM_RESET,
            StreamResetException(ErrorCode.INTERNAL_ERROR) to FailureKind.STREAM_RESET,
            ConnectionShutdownException() to FailureKind.REFUSED_STREAM,
            SessionExpired() to FailureKind.UNLISTED,
            object : SocketTimeoutException() {} to FailureKind.UNLISTED,
            RetryStoppedException.of(StopReason.Attempts, 503, emptyList(), RetryReport.of(emptyList())) to FailureKind.UNLISTED,
        ).map(::kindTest)

    @TestFactory
    fun `wrapped, they are what they were`(): List<DynamicTest> =
        listOf(
            IOException(SocketTimeoutException()) to FailureKind.READ_TIMEOUT,
            IOException(ExecutionException(UnknownHostException())) to FailureKind.DNS,
            IOException(IOException(IOException(ConnectException()))) to FailureKind.CONNECT_REFUSED,
            SSLException(null, SocketException("Connection reset")) to FailureKind.RESET,
            // What a type says is not taken back by its cause, which only explains it.
            SSLHandshakeException(null).dueTo(EOFException()) to FailureKind.TLS_BROKEN_OFF,
            SSLHandshakeException(null).dueTo(SocketException()) to FailureKind.TLS_BROKEN_OFF,
            SocketTimeoutException().dueTo(SocketException("Socket closed")) to FailureKind.READ_TIMEOUT,
            IOException(SessionExpired()) to FailureKind.UNLISTED,
            IOException(Domain()) to FailureKind.UNLISTED,
        ).map(::kindTest)

    @TestFactory
    fun `a certificate's fault anywhere is one`(): List<DynamicTest> =
        listOf(
            SSLHandshakeException(null).dueTo(CertificateException(certificate)) to FailureKind.CERTIFICATE,
            IOException(SSLHandshakeException(null).dueTo(certificate)) to FailureKind.CERTIFICATE,
            ConnectException().with(SSLHandshakeException(null).dueTo(certificate)) to FailureKind.CERTIFICATE,
            SSLHandshakeException("Received fatal alert: bad_certificate") to FailureKind.CERTIFICATE,
            SSLHandshakeException("Received fatal alert: handshake_failure") to FailureKind.TLS_BROKEN_OFF,
            SSLHandshakeException("Connection closed by peer") to FailureKind.TLS_BROKEN_OFF,
            SSLPeerUnverifiedException("Certificate pinning failure!\n  Peer certificate chain:") to FailureKind.PINNING,
        ).map(::kindTest)

    @TestFactory
    fun `of several failures the one that promises least speaks`(): List<DynamicTest> =
        listOf(
            // Two addresses, both refused.
            ConnectException().with(ConnectException()) to FailureKind.CONNECT_REFUSED,
            // Lost in the middle, sent again by the client, then refused.
            ConnectException().with(EOFException()) to FailureKind.UNEXPECTED_END,
            ConnectException().with(IOException()) to FailureKind.OTHER_IO,
            UnknownHostException().with(ProtocolException()) to FailureKind.PROTOCOL,
            SocketException().with(SessionExpired()) to FailureKind.UNLISTED,
            // Tracing tools attach such things; they mean nothing.
            ConnectException().with(Domain(), Error("a trace")) to FailureKind.CONNECT_REFUSED,
        ).map(::kindTest)

    private fun kindTest(row: Pair<IOException, FailureKind>): DynamicTest =
        dynamicTest("${describe(row.first)}: ${row.second}") { assertEquals(row.second, failureKind(row.first, null)) }

    private fun describe(thrown: Throwable): String =
        thrown.javaClass.simpleName + thrown.cause?.let { " due to ${describe(it)}" }.orEmpty() +
            thrown.suppressed.joinToString("") { " with ${describe(it)}" }

    @Test
    fun `a circle of causes ends`() {
        val outer = IOException()
        val inner = IOException(outer)
        outer.initCause(inner)
        inner.addSuppressed(outer)
        assertEquals(FailureKind.OTHER_IO, failureKind(outer, null))
    }

    @Test
    fun `the text tells only what the types leave open`() {
        assertEquals(FailureKind.RESET, failureKind(SocketException("Connection reset"), null))
        assertEquals(FailureKind.UNEXPECTED_END, failureKind(ProtocolException("unexpected end of stream"), null))
        assertEquals(FailureKind.CONNECT_TIMEOUT, failureKind(ConnectException("Connection timed out"), null))
        assertEquals(FailureKind.CONNECT_UNREACHABLE, failureKind(ConnectException("Network is unreachable"), null))
    }

    @Test
    fun `a timeout is not taken for an interrupt, nor an interrupt for a timeout`() {
        assertFalse(isInterrupt(InterruptedIOException()))
        assertFalse(isInterrupt(InterruptedIOException("timeout")))
        assertFalse(isInterrupt(SocketTimeoutException("interrupted")))
        assertTrue(isInterrupt(InterruptedIOException("interrupted")))
        assertTrue(isInterrupt(IOException(InterruptedException())))
        assertTrue(isInterrupt(ClosedByInterruptException()))
        Thread.currentThread().interrupt()
        assertTrue(isInterrupt(SocketException()))
    }

    @Test
    fun `how long a failed look-up is cached is read as the JVM reads it`() {
        assertEquals(10_000_000_000, FailedLookUps.cachedNanos(null))
        assertEquals(10_000_000_000, FailedLookUps.cachedNanos("soon"))
        assertEquals(0, FailedLookUps.cachedNanos("0"))
        assertEquals(3_000_000_000, FailedLookUps.cachedNanos(" 3 "))
        assertEquals(Long.MAX_VALUE, FailedLookUps.cachedNanos("-1"))
    }
}
