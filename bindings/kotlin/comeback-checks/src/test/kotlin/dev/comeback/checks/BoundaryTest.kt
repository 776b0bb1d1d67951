// Who may name a generated binding: one module each, and nobody else. Read from class files, which hide no import.
package dev.comeback.checks

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

class BoundaryTest {
    private val modules = Module.all.filter { it.classes.isDirectory }

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

    /** On 32-bit ARM small numbers once came back with dirt in their upper bits. */
    @Test
    fun `no unsigned number, no number below 32 bits and no duration crosses to Kotlin`() {
        for (module in modules.filter { it.name.endsWith("-ffi") }) {
            val crossing =
                module.classes
                    .walk()
                    .filter { it.extension == "class" && it.name.startsWith("FfiConverter") }
                    .map { it.nameWithoutExtension.removePrefix("FfiConverter") }
                    .toSet()
            assertTrue("Long" in crossing, "the converters are called otherwise now: $crossing")
            assertEquals(emptySet(), crossing intersect setOf("UByte", "UShort", "UInt", "ULong", "Byte", "Short", "Duration", "Timestamp"))
        }
    }

    private fun modulesNaming(prefix: String): Set<String> = modules.filter { names(it, prefix) }.map { it.name }.toSet()

    /** Names of classes stand in a class file's constants as they are, ASCII with slashes. */
    private fun names(
        module: Module,
        prefix: String,
    ): Boolean =
        module.classes
            .walk()
            .any { it.extension == "class" && prefix in it.readText(Charsets.ISO_8859_1) }
}
