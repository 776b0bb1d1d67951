// The Maven modules as they lie in the repository, with what was built of them.
package dev.comeback.checks

import java.io.File

internal class Module(
    val folder: File,
) {
    private val pom = folder.resolve("pom.xml").readText()

    /** Its artifactId, which is not always the name of its folder. */
    val name: String =
        checkNotNull(
            Regex("</parent>\\s*<artifactId>([^<]+)").find(pom),
        ) { "$folder/pom.xml has no artifactId" }.groupValues[1]

    val classes: File = folder.resolve("target/classes")

    /** Whether others use it: there every public declaration says that it is one. */
    val isPublic: Boolean get() = "-Xexplicit-api=strict" in pom

    companion object {
        private val repository = File(System.getProperty("comeback.repository"))

        val all: List<Module> =
            listOf("bindings/kotlin", "android", "evidence")
                .flatMap {
                    repository
                        .resolve(it)
                        .listFiles()
                        .orEmpty()
                        .toList()
                }.filter { it.resolve("pom.xml").exists() }
                .map(::Module)
                .sortedBy { it.name }

        fun named(name: String): Module = all.single { it.name == name }
    }
}
