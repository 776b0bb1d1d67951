// A JVM of its own for what only the first time shows, or what one JVM's luck would decide.
package dev.comeback.bench

import java.io.File

/** Runs [main]'s `main` in a fresh JVM and reads the figures it prints, separated by blanks. */
internal fun freshProcess(
    main: Class<*>,
    vararg arguments: String,
): LongArray {
    val java = File(System.getProperty("java.home"), "bin/java").path
    val command = listOf(java, "-cp", System.getProperty("java.class.path"), main.name) + arguments
    val process = ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start()
    val said = process.inputStream.bufferedReader().readText()
    check(process.waitFor() == 0) { "a fresh process failed: $said" }
    return said
        .trim()
        .split(' ')
        .map { it.toLong() }
        .toLongArray()
}
