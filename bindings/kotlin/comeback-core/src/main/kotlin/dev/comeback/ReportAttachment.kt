// How a report travels with the exception that ended its call: as a suppressed throwable, so that the exception stays what it is.
@file:JvmName("RetryReports")

package dev.comeback

import dev.comeback.internal.contained
import java.util.Collections
import java.util.IdentityHashMap

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
 * Whether the request that ended with this may have reached the server; see [RetryReport.mayHaveArrived]. True without a report: then nobody knows.
 */
public val Throwable.mayHaveArrived: Boolean
    @JvmName("mayHaveArrived")
    get() = retryReport?.mayHaveArrived ?: true

/** Carries a report inside [Throwable.getSuppressed]. It has no stack of its own: printed, it is one line. */
internal class AttachedReport(
    @Transient
    @Volatile
    var report: RetryReport?,
) : Exception(null, null, false, false) {
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
) {
    contained {
        val attachment = last.attachment()
        if (attachment != null) {
            attachment.report = report
        } else {
            for (failure in earlier) {
                // Neither itself, nor twice, nor in a circle.
                if (!last.leadsTo(failure) && !failure.leadsTo(last)) last.addSuppressed(failure)
            }
            last.addSuppressed(AttachedReport(report))
        }
    }
}

/** Whether [other] is this, or among its causes and suppressed exceptions at any depth. */
private fun Throwable.leadsTo(other: Throwable): Boolean {
    val seen = identitySet()
    val open = arrayListOf(this)
    while (open.isNotEmpty()) {
        val current = open.removeAt(open.lastIndex)
        if (current === other) return true
        if (seen.add(current)) {
            current.cause?.let(open::add)
            open.addAll(current.suppressed)
        }
    }
    return false
}

private fun identitySet(): MutableSet<Throwable> = Collections.newSetFromMap(IdentityHashMap())
