// Whole calls, step by step, against the independent model's answers. More of them: -Dcomeback.scenarios=FILE, as `cargo xtask oracle` does.
package dev.comeback

import kotlinx.serialization.json.Json
import kotlinx.serialization.json.jsonObject
import org.junit.jupiter.api.Assumptions.assumeTrue
import java.io.File
import kotlin.test.Test
import kotlin.test.fail

class ScenariosTest {
    @Test
    fun `the scenarios every clone has are answered as the model answers them`() {
        replay(File(Vectors.folder, "scenarios.jsonl"))
    }

    @Test
    fun `the scenarios named on the command line are answered as the model answers them`() {
        val file = System.getProperty("comeback.scenarios")
        assumeTrue(file != null, "-Dcomeback.scenarios names no file")
        replay(File(file))
    }

    private fun replay(file: File) {
        val differences =
            file.useLines { lines ->
                lines
                    .map { Json.parseToJsonElement(it).jsonObject }
                    .mapNotNull { Replay(it).difference() }
                    .toList()
            }
        if (differences.isNotEmpty()) fail("${differences.size} differences, the first:\n${differences.take(5).joinToString("\n")}")
    }
}
