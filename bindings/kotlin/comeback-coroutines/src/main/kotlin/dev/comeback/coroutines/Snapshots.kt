// What is known about the network, as a flow.
package dev.comeback.coroutines

import dev.comeback.Connectivity
import dev.comeback.NetworkSnapshot
import kotlinx.coroutines.ExperimentalForInheritanceCoroutinesApi
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.StateFlow

/**
 * The snapshots of this connectivity: its value is always the newest, collectors see each change or, if they are slow, the newest of several. Only
 * those who collect are subscribed.
 */
public val Connectivity.snapshots: StateFlow<NetworkSnapshot> get() = SnapshotFlow(this)

// A view, not a copy: a copy would need a subscription that nobody ends.
@OptIn(ExperimentalForInheritanceCoroutinesApi::class)
private class SnapshotFlow(
    private val connectivity: Connectivity,
) : StateFlow<NetworkSnapshot> {
    override val value: NetworkSnapshot get() = connectivity.snapshot

    override val replayCache: List<NetworkSnapshot> get() = listOf(value)

    override suspend fun collect(collector: FlowCollector<NetworkSnapshot>): Nothing {
        val changed = Channel<Unit>(Channel.CONFLATED)
        // Subscribed before the first value is read, so that no change in between is lost.
        connectivity.subscribe { changed.trySend(Unit) }.use {
            var emitted: NetworkSnapshot? = null
            while (true) {
                val newest = value
                if (newest != emitted) collector.emit(newest)
                emitted = newest
                changed.receive()
            }
        }
    }
}
