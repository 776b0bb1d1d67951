// What Comeback told of the latest calls, as lines to read.
package dev.comeback.sample

import dev.comeback.RetryEvent
import java.util.ArrayDeque
import java.util.concurrent.TimeUnit.NANOSECONDS

/** Told on the threads of calls, read on the main thread. */
class AttemptLog {
    private val lines = ArrayDeque<String>()

    @Volatile
    var onChange: () -> Unit = {}

    fun add(event: RetryEvent) {
        add("${event.label ?: ""} #${event.callId}: ${event.inWords()}")
    }

    fun add(line: String) {
        synchronized(lines) {
            lines.addLast(line)
            if (lines.size > LONGEST) lines.removeFirst()
        }
        onChange()
    }

    fun text(): String = synchronized(lines) { lines.joinToString("\n") }

    private fun RetryEvent.inWords(): String =
        when (this) {
            is RetryEvent.AttemptFailed -> "failed (${failure ?: status})${if (counted) "" else ", not counted"}"
            is RetryEvent.AttemptAbandoned -> "abandoned: its network is gone"
            is RetryEvent.WaitPlanned -> "waits ${plannedNanos.inMillis()} ms, ${why.name.lowercase()}"
            is RetryEvent.Resumed -> "goes again after ${effectiveNanos.inMillis()} ms, by ${by.name.lowercase()}"
            is RetryEvent.Finished -> reason?.let { "stopped: $it" } ?: "done after ${elapsedNanos.inMillis()} ms"
            is RetryEvent.Unavailable -> "the native library is missing: $file for $architecture"
            else -> toString()
        }

    private fun Long.inMillis() = NANOSECONDS.toMillis(this)

    private companion object {
        const val LONGEST = 40
    }
}
