// The results in words and as JSON.
package dev.comeback.arena

import java.util.Locale

internal fun tables(match: Match): String =
    buildString {
        val model = match.link.model
        appendLine(
            "Modelled link: a loss is noticed ${seconds(
                model.lossLate,
            )} late, a return ${seconds(model.returnLate)}; attempts fail at once while the",
        )
        appendLine(
            "system says offline; else SYNs go out at 0, 1, 3 and 7 s, connect timeout ${seconds(model.connectTimeout)}. An exchange takes",
        )
        appendLine("${seconds(model.exchange)} and is lost if a dead second falls into it (read timeout ${seconds(model.readTimeout)}).")
        appendLine(
            "Real libraries in virtual time; what is called \"schedule of\" follows that library's sources. Seed ${match.seed}.",
        )
        appendLine()
        appendLine(row("trace", "seconds", "dead", "outages", "p50", "p90", "longest", "≥ 10 s", "s in those"))
        for (trace in listOf(match.link.trace.statistics) + RECORDED) {
            with(trace) {
                appendLine(
                    row(
                        name,
                        "$seconds",
                        "${decimal(deadPercent)} %",
                        "$outages",
                        "$p50 s",
                        "$p90 s",
                        "$longest s",
                        "$longOutages",
                        "$longSeconds",
                    ),
                )
            }
        }
        group("Taps in dead windows of 10 s and more", match) { it.inLongWindows() }
        group("Taps uniform in time", match) { it.uniform() }
        shortfall(match)
    }

private fun StringBuilder.shortfall(match: Match) {
    val comeback = match.clients.find { it.name == COMEBACK } ?: return
    appendLine()
    appendLine("Taps in dead windows of 10 s and more that the limit serves and $COMEBACK does not:")
    for (short in shortfalls(match.link, comeback)) {
        val causes = short.causes.entries.joinToString("; ") { (cause, taps) -> "$taps: ${cause.text}" }
        appendLine("  window of ${short.window.millis / SECOND} s at ${short.window.from / SECOND} s".padEnd(34) + causes)
    }
}

private fun StringBuilder.group(
    title: String,
    match: Match,
    stories: (Run) -> List<Story>,
) {
    val taps = stories(match.limit).size
    appendLine()
    appendLine("$title: $taps")
    if (taps == 0) return
    val columns =
        arrayOf("served", "gave up", "of limit", "lag p50", "p90", "p99", "all p50", "all p90", "sends", "dead sends", "failed after")
    appendLine(row("", *columns))
    for (run in listOf(match.limit) + match.clients) {
        with(score(stories(run))) {
            appendLine(
                row(
                    run.name,
                    "$succeeded",
                    "$gaveUp",
                    percentOfPossible?.let { "${decimal(it)} %" } ?: "–",
                    seconds(lagP50),
                    seconds(lagP90),
                    seconds(lagP99),
                    lagAllP50?.let(::seconds) ?: "endless",
                    lagAllP90?.let(::seconds) ?: "endless",
                    decimal(sendsPerRequest),
                    "$deadSends",
                    seconds(failureP50),
                ),
            )
        }
    }
}

private fun row(
    name: String,
    vararg cells: String,
) = name.padEnd(26) + cells.joinToString("") { it.padStart(11) }

internal fun seconds(millis: Long?): String = if (millis == null) "–" else String.format(Locale.ROOT, "%.2f s", millis / 1000.0)

internal fun decimal(value: Double): String = String.format(Locale.ROOT, "%.1f", value)

/** One line. A number that there is not, or that is endless, is null. */
internal fun json(match: Match): String {
    val model = match.link.model
    val clients =
        (match.clients + match.limit).joinToString(",") { run ->
            """{"name":${quoted(run.name)},${fields(score(run.stories))},"uniform":{${fields(score(run.uniform()))}},""" +
                """"long":{${fields(score(run.inLongWindows()))}}}"""
        }
    val short =
        match.clients.filter { it.name == COMEBACK }.flatMap { shortfalls(match.link, it) }.joinToString(",") { short ->
            val causes = Cause.entries.joinToString(",") { """"${it.field}":${short.causes[it] ?: 0}""" }
            """{"window_at_s":${short.window.from / SECOND},"window_s":${short.window.millis / SECOND},$causes}"""
        }
    return """{"clients":[$clients],"shortfall":[$short],"seed":${match.seed},"taps":${match.moments.size},"trace":${trace(
        match.link.trace.statistics,
    )},""" +
        """"recorded":[${RECORDED.joinToString(",", transform = ::trace)}],""" +
        """"model":{"loss_late_ms":${model.lossLate},"return_late_ms":${model.returnLate},"exchange_ms":${model.exchange},""" +
        """"connect_timeout_ms":${model.connectTimeout},"read_timeout_ms":${model.readTimeout}}}"""
}

private fun fields(score: Score): String =
    with(score) {
        """"taps":$taps,"succeeded":$succeeded,"gave_up":$gaveUp,"limit":$possible,"served_of_limit":$servedOfPossible,""" +
            """"lag_p50_ms":$lagP50,"lag_p90_ms":$lagP90,"lag_p99_ms":$lagP99,"lag_all_p50_ms":$lagAllP50,"lag_all_p90_ms":$lagAllP90,""" +
            """"sends_per_request":${String.format(Locale.ROOT, "%.3f", sendsPerRequest)},"dead_sends":$deadSends,""" +
            """"failed_after_p50_ms":$failureP50,"failed_after_p90_ms":$failureP90"""
    }

private fun trace(statistics: Statistics): String =
    with(statistics) {
        """{"name":${quoted(
            name,
        )},"seconds":$seconds,"dead_percent":${decimal(deadPercent)},"outages":$outages,"p50_s":$p50,"p90_s":$p90,""" +
            """"longest_s":$longest,"long_outages":$longOutages,"long_seconds":$longSeconds}"""
    }

private fun quoted(text: String): String =
    text.asIterable().joinToString("", "\"", "\"") { char ->
        when {
            char == '"' || char == '\\' -> "\\$char"
            char < ' ' -> "\\u%04x".format(char.code)
            else -> char.toString()
        }
    }
