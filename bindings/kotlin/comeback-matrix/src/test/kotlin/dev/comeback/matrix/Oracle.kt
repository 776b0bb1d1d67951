// What must hold in every cell, whatever is composed: judged by what the server counted.
package dev.comeback.matrix

import dev.comeback.RetryReport
import dev.comeback.StopReason
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
    val beneath = CONNECTIONS_TRIED * played.brokenOnReused.takeIf { cell.clientMayResend }.let { it ?: 0 }
    val bySendOfOther = sendsByItself(cell) * if (cell.made.isUnknown && cell.isRepeatable) cell.preset.maxAttempts else 1
    if (cell.isRepeatable) {
        val allowed = cell.preset.maxAttempts * bySendOfOther + beneath
        check(sends <= allowed, Rule.SENDS) { "$sends sends for ${cell.preset.maxAttempts}" }
    } else {
        // Which acts by itself in the one attempt of the block, with the one key.
        val byLayer = if (cell.made.isUnknown && cell.carriesKey) cell.preset.maxAttempts else 1
        val allowed = byLayer * bySendOfOther + if (cell.carriesKey) beneath else 0
        check(sends <= allowed, Rule.TWICE) { "$sends sends" }
    }

    val keys = played.arrivals.filter { it.head != null }.map { it.key }
    if (cell.carriesKey) check(keys.distinct().size <= 1 && null !in keys, Rule.KEYS) { "${keys.distinct().size} keys" }
    if (!cell.carriesKey) check(keys.all { it == null }, Rule.KEYS) { "a key that nobody asked for" }

    // A layer that does not know of the block has an end of its own in each of the block's attempts.
    if (!cell.made.isUnknown) check(played.finished.size == 1, Rule.FINAL) { "${played.finished.size} final events" }
    played.finished.singleOrNull()?.let { end ->
        val counted = end.counted + played.abandoned
        check(sends <= counted * bySendOfOther + beneath, Rule.COUNT) { "$counted counted, $sends sent" }
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
    if (cell.fault == Fault.OK && cell.inner.isTransparent && cell.made != Made.PAST_ITS_END) {
        check(played.answer?.status == 200, Rule.LIVE) { "no answer: ${played.thrown}" }
    }
    check(!isFault(played.thrown), Rule.FAULT) { played.thrown.toString() }
    return violations
}

/** With `client_resends = keep` OkHttp sends a request that may be repeated again by itself when its pooled connection broke: over others until one is fresh. */
private const val CONNECTIONS_TRIED = 3

/** How often a client of the app's that has no Comeback sends one request, by itself. */
private fun sendsByItself(cell: Cell): Int =
    when {
        cell.inner != Inner.FAILOVER_OTHER_FIRST || !cell.driver.isOkHttp -> 1
        cell.fault == Fault.STATUS_408 || cell.fault == Fault.STATUS_503_NOW -> 2
        else -> 1
    }

private fun report(played: Played): RetryReport? = played.answer?.report ?: played.thrown?.retryReport

/** How many attempts are to be counted at least; null: not judged. */
private fun liveness(played: Played): Int? {
    val cell = played.cell
    // What is told to every block ends others' blocks too.
    if (!cell.inner.isTransparent || cell.made.isUnknown || cell.made == Made.PAST_ITS_END) return null
    // A call that blocks the block's thread outlasts the attempt's limit: its answer is there then, and is taken.
    val outlasts =
        cell.outer == Outer.RETRY && cell.preset.limitsAttempts && (cell.driver == Driver.INTERCEPTOR || cell.made == Made.IN_RUN_BLOCKING)
    if (outlasts && cell.fault == Fault.LATE) return 1
    // A busy machine's timers may be later than the answer.
    if (cell.fault == Fault.LATE && played.answer?.status == 200) return 1
    // On a busy machine the factory leaves an attempt alone at its limit, and an interceptor of the app's may still have its body then.
    val mayHoldBody = cell.driver == Driver.FACTORY && cell.inner != Inner.NOTHING
    if (cell.fault == Fault.LATE && mayHoldBody && played.finished.singleOrNull()?.reason == StopReason.BodyNotReplayable) return 1
    return when (cell.fault) {
        Fault.OK, Fault.STATUS_421, Fault.HEAD_THEN_RESET -> {
            1
        }

        Fault.STATUS_408, Fault.STATUS_503, Fault.STATUS_503_NOW, Fault.RESET_BEFORE, Fault.RESET_AFTER, Fault.LATE, Fault.DROPPED -> {
            if (cell.isRepeatable) cell.preset.maxAttempts else 1
        }

        // Nothing was sent, whatever is asked for.
        Fault.REFUSED -> {
            if (cell.isRepeatable || cell.inner == Inner.NOTHING) cell.preset.maxAttempts else null
        }

        Fault.UNAUTHORIZED -> {
            null
        }
    }
}

private fun isFault(thrown: Throwable?): Boolean =
    when {
        thrown == null -> false

        thrown is Hung -> true

        // How Ktor says that a body broke off.
        thrown.message?.startsWith("Content-Length mismatch") == true -> false

        generateSequence(
            thrown,
        ) { it.cause }.any { it is IllegalStateException || it is ClassCastException || it is NullPointerException } -> true

        else -> generateSequence(thrown) { it.cause }.any { it.message == "Comeback failed" || it.message == SIGNS_FORMS }
    }

/** What the event, the report and the exception say. */
private fun Played.mayHaveArrived(): List<Boolean?> =
    listOf(finished.firstOrNull()?.said(), report(this)?.said(), thrown?.let { extension?.invoke(null, it) as Boolean? })

private fun Any.said(): Boolean? = javaClass.methods.firstOrNull { it.name == "getMayHaveArrived" }?.invoke(this) as Boolean?

private val extension =
    runCatching {
        Class.forName("dev.comeback.RetryReports").methods.firstOrNull { it.name.contains("mayHaveArrived", ignoreCase = true) }
    }.getOrNull()
