// What types say that every adapter reads alike; the table of the platform's I/O errors is in comeback-okhttp's tests.
package dev.comeback

import org.junit.jupiter.api.Test
import java.io.IOException
import java.net.ConnectException
import java.net.SocketTimeoutException
import java.nio.channels.UnresolvedAddressException
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

    @Test
    fun `the worse of two failures speaks`() {
        val refused = ConnectException().apply { addSuppressed(SocketTimeoutException()) }
        assertEquals(FailureKind.READ_TIMEOUT, platform.kindOf(refused))
    }
}
