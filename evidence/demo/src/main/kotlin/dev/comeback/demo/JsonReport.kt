// The result for scripts.
package dev.comeback.demo

/** The one line `--json` prints last on stdout. A lag is null when no tap succeeded. */
internal fun jsonReport(run: RideRun): String {
    val clients = listOf(run.comeback, run.handWritten).joinToString(",") { client(it) }
    return """{"clients":[$clients],"seed":${run.seed},"trace":${quoted(run.ride.name)}}"""
}

private fun client(run: ClientRun): String =
    with(run.score) {
        """{"name":${quoted(run.name)},"taps":$taps,"succeeded":$succeeded,"gave_up":$gaveUp,"sends":$sends,""" +
            """"lag_p50_ms":$lagP50,"lag_p90_ms":$lagP90,"orders":$orders,"duplicates":$duplicates}"""
    }

private fun quoted(text: String): String =
    text.asIterable().joinToString("", "\"", "\"") { char ->
        when {
            char == '"' || char == '\\' -> "\\$char"
            char < ' ' -> "\\u%04x".format(char.code)
            else -> char.toString()
        }
    }
