// Who may name the generated binding: comeback-core, and nobody else. Read from class files, which hide no import.
package dev.comeback.checks

import org.junit.jupiter.api.Test
import java.io.File
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals

class BoundaryTest {
    private val modules =
        File(System.getProperty("comeback.modules")).listFiles { file -> file.resolve("target/classes").isDirectory }.orEmpty().toList()

    @Test
    fun `only comeback-core names the generated binding`() {
        val allowed = setOf("comeback-ffi", "comeback-core")
        assertEquals(emptyList(), modules.filter { it.name !in allowed }.flatMap(::classesNamingTheBinding))
    }

    @Test
    fun `a class that names the generated binding is found`() {
        assertContains(modules.map { it.name }, "comeback-okhttp")
        val core = modules.single { it.name == "comeback-core" }
        assertNotEquals(emptyList(), classesNamingTheBinding(core))
    }

    /** Names of classes stand in a class file's constants as they are, ASCII with slashes. */
    private fun classesNamingTheBinding(module: File): List<String> =
        module
            .resolve("target/classes")
            .walk()
            .filter { it.extension == "class" && "dev/comeback/ffi/" in it.readText(Charsets.ISO_8859_1) }
            .map { it.relativeTo(module).path }
            .toList()
}
