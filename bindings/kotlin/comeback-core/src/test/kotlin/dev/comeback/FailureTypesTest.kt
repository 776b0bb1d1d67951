// What types say that every adapter reads alike; the table of the platform's I/O errors is in comeback-okhttp's tests.
package dev.comeback

import com.apollographql.apollo.exception.ApolloNetworkException
import dev.comeback.driver.FailureTypes
import dev.comeback.driver.Outcome
import dev.comeback.driver.Promise
import dev.comeback.driver.promise
import org.chromium.net.impl.NetworkExceptionImpl
import org.junit.jupiter.api.Test
import java.io.IOException
import java.io.UncheckedIOException
import java.lang.reflect.InvocationTargetException
import java.net.ConnectException
import java.net.SocketTimeoutException
import java.nio.channels.UnresolvedAddressException
import java.security.cert.CertificateException
import java.util.concurrent.CompletionException
import java.util.concurrent.ExecutionException
import javax.net.ssl.SSLHandshakeException
import kotlin.test.assertEquals
import kotlin.test.assertNull

class FailureTypesTest {
    @Test
    fun `a kind promises what the core makes of it`() {
        for (kind in FailureKind.entries) {
            val proved = Outcome.failure(kind, sentNothing = kind.promise == Promise.NEVER_SENT)
            val world = World()
            world.session().failed(proved)
            val expected =
                when (kind.promise) {
                    Promise.NEVER_SENT -> OutcomeClass.NEVER_SENT
                    Promise.IN_DOUBT -> OutcomeClass.IN_DOUBT
                    Promise.PERMANENT -> OutcomeClass.PERMANENT_FAILURE
                }
            assertEquals(expected, (world.heard.first() as RetryEvent.AttemptFailed).outcome, "$kind")
        }
    }

    private class ClientTimeout : SocketTimeoutException()

    private val platform = FailureTypes(emptyList())

    @Test
    fun `an unresolved address is a failed look-up, alone or as a cause`() {
        assertEquals(FailureKind.DNS, platform.kindOf(UnresolvedAddressException()))
        assertEquals(FailureKind.DNS, platform.kindOf(ConnectException().apply { initCause(UnresolvedAddressException()) }))
    }

    @Test
    fun `a full disk is a local fault, whatever wrote to it`() {
        assertEquals(FailureKind.LOCAL_FILE, platform.kindOf(IOException("No space left on device")))
    }

    @Test
    fun `what is no I-O error and has none behind it is the app's own`() {
        assertEquals(FailureKind.UNLISTED, platform.kindOf(IllegalStateException()))
        assertEquals(FailureKind.READ_TIMEOUT, platform.kindOf(RuntimeException(SocketTimeoutException())))
    }

    @Test
    fun `a client's own types are asked first, and are the app's own to every other client`() {
        val client = FailureTypes(emptyList(), { it is ClientTimeout }, { if (it is ClientTimeout) FailureKind.ATTEMPT_TIMEOUT else null })
        assertEquals(FailureKind.ATTEMPT_TIMEOUT, client.kindOf(ClientTimeout()))
        assertEquals(FailureKind.UNLISTED, platform.kindOf(ClientTimeout()))
    }

    private class TransportFault(
        cause: Throwable? = null,
    ) : RuntimeException(cause)

    private class AppFault : IOException()

    @Test
    fun `what only wraps another exception is judged by that one`() {
        val wrappers: List<(Throwable) -> Throwable> =
            listOf(
                { ApolloNetworkException(it) },
                { NetworkExceptionImpl(it) },
                { ExecutionException(it) },
                { CompletionException(it) },
                { InvocationTargetException(it) },
                { ExecutionException(ApolloNetworkException(it)) },
            )
        for (wrap in wrappers) {
            val name = wrap(IOException()).javaClass.simpleName
            assertEquals(FailureKind.CONNECT_REFUSED, platform.kindOf(wrap(ConnectException("Connection refused"))), name)
            assertEquals(FailureKind.OTHER_IO, platform.kindOf(wrap(IOException("broken"))), name)
            assertEquals(
                FailureKind.CERTIFICATE,
                platform.kindOf(wrap(SSLHandshakeException("").apply { initCause(CertificateException()) })),
                name,
            )
            assertEquals(FailureKind.UNLISTED, platform.kindOf(wrap(AppFault())), name)
        }
        assertEquals(FailureKind.OTHER_IO, platform.kindOf(UncheckedIOException(IOException("broken"))))
    }

    @Test
    fun `a transport's exception that wraps nothing is an I-O error of which nobody says more`() {
        assertEquals(FailureKind.OTHER_IO, platform.kindOf(ApolloNetworkException(null)))
        assertEquals(FailureKind.OTHER_IO, platform.kindOf(NetworkExceptionImpl()))
        assertEquals(FailureKind.UNLISTED, platform.kindOf(ExecutionException(null)))
    }

    @Test
    fun `what an app registers is a transport's, and the app's own until then`() {
        class Named : TransportFaultOf(SocketTimeoutException())
        val registered = setOf<Class<out Throwable>>(TransportFault::class.java, TransportFaultOf::class.java)
        for ((thrown, kind) in listOf(TransportFault() to FailureKind.OTHER_IO, Named() to FailureKind.READ_TIMEOUT)) {
            assertEquals(FailureKind.UNLISTED, platform.kindOf(thrown))
            assertEquals(kind, platform.kindOf(thrown, registered))
        }
        assertEquals(FailureKind.UNLISTED, platform.kindOf(TransportFault(AppFault()), registered))
    }

    private open class TransportFaultOf(
        cause: Throwable,
    ) : RuntimeException(cause)

    @Test
    fun `an exception that is its own cause ends`() {
        class Loop : RuntimeException() {
            override val cause: Throwable get() = this
        }
        assertEquals(FailureKind.OTHER_IO, platform.kindOf(Loop(), setOf(Loop::class.java)))
    }

    @Test
    fun `the worse of two failures speaks`() {
        val refused = ConnectException().apply { addSuppressed(SocketTimeoutException()) }
        assertEquals(FailureKind.READ_TIMEOUT, platform.kindOf(refused))
    }
}
