// A device on which the client's native library cannot be loaded; see the pom.
package dev.comeback.client

import dev.comeback.RetryEvent
import org.junit.jupiter.api.Tag
import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertNotSame
import kotlin.test.assertNull

@Tag("without-library")
class WithoutLibraryTest {
    private val file = "/nonexistent/libcomeback_client.so"

    @Test
    fun `making a client does not throw, and calls say what is wrong, each with an exception of its own`() {
        ClientFixture().use { ground ->
            val thrown = List(2) { assertFailsWith<ClientException.Unavailable> { soon { ground.client.get("http://127.0.0.1/") } } }
            assertNotSame(thrown[0], thrown[1])
            for (unavailable in thrown) {
                assertEquals(file, unavailable.file)
                assertEquals(System.getProperty("os.arch"), unavailable.architecture)
                assertIs<UnsatisfiedLinkError>(unavailable.cause)
                assertNull(unavailable.report)
            }
        }
    }

    @Test
    fun `the self-check throws the same, of every client that is made`() {
        ClientFixture().use { ground ->
            val another = ComebackClient(ground.comeback)
            for (client in listOf(ground.client, another)) {
                val thrown = assertFailsWith<ClientException.Unavailable> { soon { client.selfCheck() } }
                assertIs<UnsatisfiedLinkError>(thrown.cause)
            }
            another.close()
        }
    }

    @Test
    fun `the listener hears once what is missing, however many clients and calls there are`() {
        ClientFixture().use { ground ->
            val another = ComebackClient(ground.comeback)
            repeat(3) { assertFailsWith<ClientException.Unavailable> { soon { another.get("http://127.0.0.1/") } } }
            eventually("the listener hears of it") { ground.events.isNotEmpty() }
            val told = assertIs<RetryEvent.Unavailable>(ground.events.single())
            assertEquals(listOf(file, System.getProperty("os.arch")), listOf(told.file, told.architecture))
            another.close()
        }
    }
}
