// Who may name a generated binding: one module each, and nobody else. Read from class files, which hide no import.
package dev.comeback.checks

import org.junit.jupiter.api.Test
import java.io.File
import kotlin.test.assertEquals

class BoundaryTest {
    private val modules =
        File(System.getProperty("comeback.modules")).listFiles { file -> file.resolve("target/classes").isDirectory }.orEmpty().toList()

    @Test
    fun `only comeback-core names the core's binding`() {
        assertEquals(setOf("comeback-ffi", "comeback-core"), modulesNaming("dev/comeback/ffi/"))
    }

    /** So that an app without comeback-client ships no Rust HTTP client. */
    @Test
    fun `only comeback-client names the client's binding, and nobody names comeback-client`() {
        assertEquals(setOf("comeback-client-ffi", "comeback-client"), modulesNaming("dev/comeback/client/ffi/"))
        assertEquals(setOf("comeback-client-ffi", "comeback-client"), modulesNaming("dev/comeback/client/"))
    }

    private fun modulesNaming(prefix: String): Set<String> = modules.filter { names(it, prefix) }.map { it.name }.toSet()

    /** Names of classes stand in a class file's constants as they are, ASCII with slashes. */
    private fun names(
        module: File,
        prefix: String,
    ): Boolean =
        module
            .resolve("target/classes")
            .walk()
            .any { it.extension == "class" && prefix in it.readText(Charsets.ISO_8859_1) }
}
