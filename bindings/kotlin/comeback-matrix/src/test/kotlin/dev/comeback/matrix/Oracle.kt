// What must hold in every cell, whatever is composed: judged by what the server counted.
package dev.comeback.matrix

import dev.comeback.RetryReport
import dev.comeback.retryReport

internal enum class Rule(
    val says: String,
) {
    TWICE("a request that must not be repeated arrived more than once"),
    SENDS("more requests arrived than the policy allows"),
    KEYS("the key is another one, or missing"),
    COUNT("the report's counted attempts are not what the server counted"),
    ARRIVED("told that it has not arrived, though the server has it"),
    FINAL("not exactly one final event"),
    LIVE("fewer attempts than the policy asks for"),
    FAULT("the caller got what no client throws, or nothing"),
}

internal class Violation(
    val played: Played,
    val rule: Rule,
    val detail: String,
) {
    val cell: Cell get() = played.cell
}

internal fun judge(played: Played): List<Violation> {
    val violations = ArrayList<Violation>()
    val cell = played.cell

    fun check(
        holds: Boolean,
        rule: Rule,
        detail: () -> String,
    ) {
        if (!holds) violations += Violation(played, rule, detail())
    }

    // Without and with a token are two requests, of which the client sends one each for every attempt.
    val sends = played.arrivals.groupBy { it.hasToken }.maxOfOrNull { it.value.size } ?: 0
    if (cell.isRepeatable) {
        // Beneath the policy the client may try another pooled connection, unless it is told not to.
        val beneath = if (cell.preset == Preset.PAYMENT) 0 else played.droppedOnReused
        check(sends <= cell.preset.maxAttempts + beneath, Rule.SENDS) { "$sends sends for ${cell.preset.maxAttempts}" }
    } else {
        check(sends <= 1, Rule.TWICE) { "$sends sends" }
    }

    val keys = played.arrivals.filter { it.head != null }.map { it.key }
    if (cell.carriesKey) check(keys.distinct().size <= 1 && null !in keys, Rule.KEYS) { "${keys.distinct().size} keys" }
    if (!cell.carriesKey) check(keys.all { it == null }, Rule.KEYS) { "a key that nobody asked for" }

    check(played.finished.size == 1, Rule.FINAL) { "${played.finished.size} final events" }
    played.finished.singleOrNull()?.let { end ->
        val counted = end.counted + played.abandoned
        check(sends <= counted + played.droppedOnReused, Rule.COUNT) { "$counted counted, $sends sent" }
        val allAnswered = played.answer != null && played.failed.all { it.status != null }
        if (allAnswered) check(sends >= end.counted, Rule.COUNT) { "$counted counted, all answered, $sends sent" }
        report(played)?.let { check(it.counted == end.counted, Rule.COUNT) { "the report says ${it.counted}, the event $counted" } }
    }

    if (played.arrivals.isNotEmpty()) {
        check(played.mayHaveArrived().none { it == false }, Rule.ARRIVED) { "${played.arrivals.size} arrived" }
    }

    liveness(played)?.let { expected ->
        val counted = played.finished.singleOrNull()?.counted
        check(counted == null || counted >= expected, Rule.LIVE) { "$counted attempts, not $expected" }
    }
    if (cell.fault == Fault.OK && cell.inner.isTransparent) {
        check(played.answer?.status == 200, Rule.LIVE) { "no answer: ${played.thrown}" }
    }
    check(!isFault(played.thrown), Rule.FAULT) { played.thrown.toString() }
    return violations
}

private fun report(played: Played): RetryReport? = played.answer?.report ?: played.thrown?.retryReport

/** How many attempts are to be counted at least; null: not judged. */
private fun liveness(played: Played): Int? {
    val cell = played.cell
    if (!cell.inner.isTransparent) return null
    return when (cell.fault) {
        Fault.OK, Fault.STATUS_421, Fault.HEAD_THEN_RESET -> 1

        Fault.STATUS_408, Fault.STATUS_503, Fault.STATUS_503_NOW, Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.LATE, Fault.DROPPED -> {
            if (cell.isRepeatable) cell.preset.maxAttempts else 1
        }

        // Nothing was sent, whatever is asked for.
        Fault.REFUSED -> if (cell.isRepeatable || cell.inner == Inner.NOTHING) cell.preset.maxAttempts else null

        Fault.UNAUTHORIZED -> null
    }
}

private fun isFault(thrown: Throwable?): Boolean =
    when {
        thrown == null -> false
        thrown is Hung -> true
        generateSequence(thrown) { it.cause }.any { it is IllegalStateException || it is ClassCastException || it is NullPointerException } -> true
        else -> generateSequence(thrown) { it.cause }.any { it.message == "Comeback failed" || it.message == SIGNS_FORMS }
    }

/** What the event, the report and the exception say. */
private fun Played.mayHaveArrived(): List<Boolean?> =
    listOf(finished.firstOrNull()?.said(), report(this)?.said(), thrown?.let { extension?.invoke(null, it) as Boolean? })

private fun Any.said(): Boolean? = javaClass.methods.firstOrNull { it.name == "getMayHaveArrived" }?.invoke(this) as Boolean?

private val extension =
    runCatching { Class.forName("dev.comeback.RetryReports").methods.firstOrNull { it.name.contains("mayHaveArrived", ignoreCase = true) } }.getOrNull()
