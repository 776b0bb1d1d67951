// A device on which the client's native library cannot be loaded; see the pom.
package dev.comeback.client

import org.junit.jupiter.api.Tag
import org.junit.jupiter.api.Test
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertNotSame

@Tag("without-library")
class WithoutLibraryTest {
    @Test
    fun `making a client does not throw, and calls say what is wrong, each with an exception of its own`() {
        Ground().use { ground ->
            val first = assertFailsWith<ClientException.Unavailable> { soon { ground.client.get("http://127.0.0.1/") } }
            val second = assertFailsWith<ClientException.Unavailable> { soon { ground.client.get("http://127.0.0.1/") } }
            assertIs<UnsatisfiedLinkError>(first.cause)
            assertNotSame(first, second)
        }
    }
}
