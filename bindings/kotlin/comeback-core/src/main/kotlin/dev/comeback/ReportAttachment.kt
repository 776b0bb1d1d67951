// How a report travels with the exception that ended its call: as a suppressed throwable, so that the exception stays what it is.
@file:JvmName("RetryReports")

package dev.comeback

import dev.comeback.internal.contained
import java.util.Collections
import java.util.IdentityHashMap
import java.util.concurrent.atomic.AtomicLong

/** What was tried before this was thrown; null if Comeback did not end the call. Causes are searched too, because some layers wrap what they rethrow. */
public val Throwable.retryReport: RetryReport?
    @JvmName("of")
    get() {
        contained {
            val seen = identitySet()
            var current: Throwable? = this
            while (current != null && seen.add(current)) {
                if (current is RetryStoppedException) return current.report
                current.attachment()?.let { return it.report }
                current = current.cause
            }
        }
        return null
    }

/**
 * Whether the request that ended with this may have reached the server; see [RetryReport.mayHaveArrived]. True without a report: then nobody knows. False for an
 * [AttemptEndedException].
 */
public val Throwable.mayHaveArrived: Boolean
    @JvmName("mayHaveArrived")
    get() = retryReport?.mayHaveArrived ?: (this !is AttemptEndedException)

/** Carries a report inside [Throwable.getSuppressed]. It has no stack of its own: printed, it is one line. */
internal class AttachedReport(
    @Transient
    @Volatile
    var report: RetryReport?,
    /** The call's request may have arrived and must not be repeated by anybody. */
    @Transient
    @Volatile
    var forbidsRepetition: Boolean = false,
) : Exception(null, null, false, false) {
    /** Attached after so many others, in this process. */
    @Transient
    @Volatile
    var number = reportsAttached.incrementAndGet()

    override fun toString(): String = "Comeback: $report"
}

private fun Throwable.attachment(): AttachedReport? = suppressed.firstOrNull { it is AttachedReport } as AttachedReport?

/**
 * Attaches [report] and the [earlier] failures of the call to the exception that ended it. Never throws.
 *
 * An exception that has a report already is thrown again and again, for instance a constant. Its report is replaced and nothing is added; otherwise it
 * would grow for ever.
 */
internal fun attachReport(
    report: RetryReport,
    last: Throwable,
    earlier: List<Throwable>,
    forbidsRepetition: Boolean = false,
) {
    contained {
        last.copiedFrom()?.let { attachReport(report, it, earlier, forbidsRepetition) }
        val attachment = last.attachment()
        if (attachment != null) {
            attachment.report = report
            attachment.forbidsRepetition = forbidsRepetition
            attachment.number = reportsAttached.incrementAndGet()
        } else {
            for (failure in earlier) {
                // Neither itself, nor twice, nor in a circle.
                if (!last.leadsTo(failure) && !failure.leadsTo(last)) last.addSuppressed(failure)
            }
            last.addSuppressed(AttachedReport(report, forbidsRepetition))
        }
    }
}

/** Whether its call was not tried again because its request must not be repeated. */
internal val RetryReport.refusedToRepeat: Boolean get() = reason == StopReason.NotRepeatable || reason == StopReason.BodyNotReplayable

/**
 * What coroutines made this copy of, to give it the stack of who awaited it; null if it is none. The next one who awaits gets a copy of the original, and what
 * was attached to this one is lost.
 */
private fun Throwable.copiedFrom(): Throwable? =
    cause?.takeIf { it.javaClass == javaClass && stackTrace.any { frame -> frame.className.startsWith("_COROUTINE") } }

/** How many reports were attached so far. */
internal val reportsAttached = AtomicLong()

/**
 * Whether a call that ended after [number] reports were attached left word with this exception that its request must not be repeated. It was none of this layer's,
 * nor did it tell this layer of it: its code ran on a thread of its own, for instance. What an earlier call left says nothing: some exceptions are thrown again
 * and again.
 */
internal fun Throwable.forbidsRepetitionSince(number: Long): Boolean {
    contained { return isBehind { it is AttachedReport && it.forbidsRepetition && it.number > number } }
    return false
}

/** Whether [isIt] holds for this, or for any of its causes and suppressed exceptions at any depth. */
private inline fun Throwable.isBehind(isIt: (Throwable) -> Boolean): Boolean {
    val seen = identitySet()
    val open = arrayListOf(this)
    while (open.isNotEmpty()) {
        val current = open.removeAt(open.lastIndex)
        if (isIt(current)) return true
        if (seen.add(current)) {
            current.cause?.let(open::add)
            open.addAll(current.suppressed)
        }
    }
    return false
}

/** Whether [other] is this, or among its causes and suppressed exceptions at any depth. */
private fun Throwable.leadsTo(other: Throwable): Boolean = isBehind { it === other }

private fun identitySet(): MutableSet<Throwable> = Collections.newSetFromMap(IdentityHashMap())
