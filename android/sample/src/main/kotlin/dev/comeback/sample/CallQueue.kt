// The latest calls, each with its attempts and waits, as lines to read.
package dev.comeback.sample

import dev.comeback.RetryEvent
import java.util.concurrent.TimeUnit.NANOSECONDS

/** Told on the threads of calls, read on the main thread. */
class CallQueue {
    /** By call id, and by a number below 0 what is of no call; the oldest first. */
    private val lines = LinkedHashMap<Long, String>()
    private var notes = 0L

    @Volatile
    var onChange: () -> Unit = {}

    fun add(event: RetryEvent) {
        synchronized(lines) {
            val line = lines[event.callId] ?: "${event.label ?: "call"} ${event.callId}:"
            put(event.callId, "$line ${event.inWords()}")
        }
        onChange()
    }

    fun add(note: String) {
        synchronized(lines) { put(--notes, note) }
        onChange()
    }

    fun text(): String = synchronized(lines) { lines.values.joinToString("\n") }

    private fun put(
        key: Long,
        line: String,
    ) {
        lines[key] = line
        if (lines.size > LONGEST) lines.remove(lines.keys.first())
    }

    private fun RetryEvent.inWords(): String =
        when (this) {
            is RetryEvent.AttemptFailed -> "${failure ?: status}${if (counted) "" else " (not counted)"},"
            is RetryEvent.AttemptAbandoned -> "given up with its network,"
            is RetryEvent.WaitPlanned -> "waits ${plannedNanos.inMillis()} ms (${why.name.lowercase()}) …"
            is RetryEvent.Resumed -> "goes again after ${effectiveNanos.inMillis()} ms (${by.name.lowercase()}),"
            is RetryEvent.Finished -> reason?.let { "stopped: $it." } ?: "done after ${elapsedNanos.inMillis()} ms."
            is RetryEvent.Unavailable -> "the native library is missing: $file for $architecture."
            else -> toString()
        }

    private fun Long.inMillis() = NANOSECONDS.toMillis(this)

    private companion object {
        const val LONGEST = 20
    }
}
