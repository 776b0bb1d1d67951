// Optional dependencies and shrinkers: what an app may not have is named in the rules that the module's jar brings, else R8 refuses to build the app.
package dev.comeback.checks

import org.junit.jupiter.api.Test
import java.io.File
import kotlin.test.assertEquals
import kotlin.test.assertTrue

class ShrinkerRulesTest {
    @Test
    fun `an app with OkHttp needs neither Retrofit nor coroutines`() = namesAll("comeback-okhttp", "retrofit2/", "kotlinx/coroutines/")

    @Test
    fun `an app needs no OkHttp for the core`() = namesAll("comeback-core", "okhttp3/")

    @Test
    fun `an app with Ktor needs neither its OkHttp engine nor OkHttp`() =
        namesAll("comeback-ktor", "io/ktor/client/engine/okhttp/", "okhttp3/")

    /** [optional]: packages of the dependencies that the module's pom calls optional. */
    private fun namesAll(
        module: String,
        vararg optional: String,
    ) {
        val classes = Module.named(module).classes
        val rules =
            classes
                .resolve("META-INF/proguard/$module.pro")
                .readLines()
                .filter { it.startsWith("-dontwarn ") }
                .map { it.removePrefix("-dontwarn ") }
        val named =
            classes
                .walk()
                .filter { it.extension == "class" }
                .flatMap { classesNamedIn(it, optional) }
                .toSet()
        for (prefix in optional) assertTrue(named.any { it.startsWith(prefix.replace('/', '.')) }, "nothing of $prefix is named in $module")
        assertEquals(emptyList(), named.filter { name -> rules.none { covers(it, name) } }, "named in $module, and not in its rules")
        assertEquals(emptyList(), rules.filter { rule -> named.none { covers(rule, it) } }, "rules of $module for nothing")
    }

    /** Names of classes stand in a class file's constants as they are, ASCII with slashes. */
    private fun classesNamedIn(
        file: File,
        packages: Array<out String>,
    ): List<String> =
        packages.flatMap { prefix ->
            Regex("${Regex.escape(prefix)}[\\w/$]+").findAll(file.readText(Charsets.ISO_8859_1)).map { it.value.replace('/', '.') }
        }

    private fun covers(
        rule: String,
        name: String,
    ): Boolean = if (rule.endsWith(".**")) name.startsWith(rule.removeSuffix("**")) else name == rule
}
