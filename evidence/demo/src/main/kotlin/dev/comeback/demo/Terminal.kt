// What standard output and standard error can do.
package dev.comeback.demo

import java.io.File
import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.TimeUnit

/** What the two output streams can do. Nothing in Java tells, so this asks the system. */
internal class Terminal(
    /** Columns of standard output. */
    val width: Int,
    /** Standard output understands colours, and nobody asked for none (NO_COLOR). */
    val colours: Boolean,
    /** Standard error is a terminal, so a progress line can be written over. */
    val progressRewrites: Boolean,
) {
    companion object {
        private const val USUAL_WIDTH = 100

        fun detect(environment: Map<String, String> = System.getenv()): Terminal {
            val dumb = environment["TERM"].let { it == null || it == "dumb" }
            val noColour = !environment["NO_COLOR"].isNullOrEmpty()
            val outIsTerminal = isTerminal(1)
            val width = environment["COLUMNS"]?.toIntOrNull() ?: (if (outIsTerminal) widthByStty() else null) ?: USUAL_WIDTH
            return Terminal(
                width.coerceIn(60, 160),
                colours = outIsTerminal && !dumb && !noColour,
                progressRewrites = isTerminal(2) && !dumb,
            )
        }

        private fun isTerminal(descriptor: Int): Boolean =
            try {
                val target = Files.readSymbolicLink(Path.of("/proc/self/fd/$descriptor")).toString()
                target.startsWith("/dev/pts/") || target.startsWith("/dev/tty") || target == "/dev/console"
            } catch (_: IOException) {
                System.console() != null // no /proc: macOS
            }

        private fun widthByStty(): Int? =
            try {
                val stty = ProcessBuilder("stty", "size").redirectInput(File("/dev/tty")).start()
                val size = stty.inputStream.bufferedReader().readText()
                stty.waitFor(1, TimeUnit.SECONDS)
                size
                    .trim()
                    .substringAfter(' ', "")
                    .toIntOrNull()
                    ?.takeIf { it > 0 }
            } catch (_: IOException) {
                null
            }
    }
}

/** [text] in lines of at most [width] characters, broken between words. */
internal fun wrapped(
    text: String,
    width: Int,
): List<String> {
    val lines = mutableListOf<String>()
    for (word in text.split(' ')) {
        val last = lines.lastOrNull()
        if (last == null || last.length + 1 + word.length > width) lines += word else lines[lines.lastIndex] = "$last $word"
    }
    return lines
}

/** Colours for standard output, or none. */
internal class Paint(
    val colours: Boolean,
) {
    fun bold(text: String) = wrapped(text, "1")

    fun faint(text: String) = wrapped(text, "2")

    /** [text] in a colour of the 256, on the background of a dead second if [dead]. */
    fun cell(
        text: String,
        colour: Int?,
        dead: Boolean,
    ): String {
        val codes = listOfNotNull(colour?.let { "38;5;$it" }, if (dead) "48;5;$DEAD_BACKGROUND" else null)
        return if (codes.isEmpty()) text else wrapped(text, codes.joinToString(";"))
    }

    private fun wrapped(
        text: String,
        code: String,
    ) = if (colours) "\u001b[${code}m$text\u001b[0m" else text

    companion object {
        const val GREEN = 35
        const val RED = 203
        const val ORANGE = 172
        const val PURPLE = 134
        const val BLUE = 33
        const val GREY = 248
        private const val DEAD_BACKGROUND = 240
    }
}
