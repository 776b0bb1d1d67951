// The public API of each module, compared with the dump that is committed beside it.
package dev.comeback.checks

import kotlinx.validation.api.dump
import kotlinx.validation.api.filterOutAnnotated
import kotlinx.validation.api.filterOutNonPublic
import kotlinx.validation.api.loadApiFromJvmClasses
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.MethodSource
import java.io.File
import kotlin.test.assertEquals
import kotlin.test.assertTrue

class PublicApiTest {
    @ParameterizedTest
    @MethodSource("publicModules")
    fun `the public API is the committed one`(module: String) {
        val folder = Module.named(module).folder
        val api = dump(Module.named(module).classes)
        assertTrue(api.isNotBlank(), "$module was not built; comeback-checks must depend on it")
        val committed = folder.resolve("api/$module.api")
        if (System.getProperty("comeback.api.write") != null) {
            committed.parentFile.mkdirs()
            committed.writeText(api)
        }
        assertTrue(committed.exists(), "$committed is missing; `cargo xtask api` writes it")
        assertEquals(committed.readText(), api, "$module's public API changed; if that is meant, run `cargo xtask api` and commit the dump")
    }

    @ParameterizedTest
    @MethodSource("publicModules")
    fun `the public API names no type of the generated binding`(module: String) {
        val api = dump(Module.named(module).classes)
        // Synthetic: the compiler's own way into a private constructor, which no source can take.
        val callable = api.lines().filter { "synthetic" !in it }
        assertEquals(emptyList(), callable.filter { "dev/comeback/ffi" in it || "dev/comeback/client/ffi" in it })
    }

    private fun dump(classes: File): String {
        val files = classes.walk().filter { it.extension == "class" }.sortedBy { it.path }
        return files
            .map { it.inputStream() }
            .loadApiFromJvmClasses()
            .filterOutAnnotated(setOf("dev/comeback/InternalComebackApi"))
            .filterOutNonPublic()
            .dump(StringBuilder())
            .toString()
    }

    private companion object {
        /** A module that is not built before this one has no classes, and the test says so. */
        @JvmStatic
        fun publicModules(): List<String> =
            Module.all
                .filter { it.isPublic }
                .map { it.name }
                // Only then is it not built; `cargo xtask check api` builds it.
                .filter { it != "comeback-android" || System.getProperty("without-android") == null }
    }
}
