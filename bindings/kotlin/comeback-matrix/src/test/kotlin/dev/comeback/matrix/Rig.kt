// What every driver's rig is given, and what a call through it comes back with.
package dev.comeback.matrix

import dev.comeback.Comeback
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryReport
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CopyOnWriteArrayList

/** An answer, in any driver's words. */
internal class Answer(
    val status: Int,
    val retryAfter: List<String>,
    val report: RetryReport?,
)

/** One call through one driver, with what is further in. */
internal interface Rig : AutoCloseable {
    /** Executes a request whose idempotency key is [key], if there is one. */
    suspend fun call(key: String?): Answer

    /** The block around calls with [key] is about to begin. */
    fun prepare(key: String?): Unit = Unit

    /** Leaves a connection in the pool. */
    suspend fun warm()
}

/** One Comeback for all cells, and a second one for what is further in. Both note what became of each call, by its label. */
internal object Comebacks {
    private val events = ConcurrentHashMap<String, MutableList<RetryEvent>>()
    private val listener =
        RetryListener { event -> event.label?.let { label -> events.getOrPut(label) { CopyOnWriteArrayList() } += event } }

    val first = Comeback { listener = this@Comebacks.listener }
    val second = Comeback { listener = this@Comebacks.listener }

    fun eventsOf(label: String): List<RetryEvent> = events.remove(label).orEmpty()
}
