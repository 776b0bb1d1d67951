// The boundary to whatever watches the network.
package dev.comeback

/**
 * What is known about the network, and a way to hear of changes. Android's monitor is one implementation, [ManualConnectivity] another. All
 * members may be used from any thread. If an implementation throws, the state counts as [NetworkState.UNKNOWN].
 */
public interface Connectivity {
    /** The newest snapshot. Reading it must be cheap: it is read before every attempt. */
    public val snapshot: NetworkSnapshot

    /**
     * Whether [snapshot] also applies to calls to this machine (loopback hosts). By default it does not, because the phone's network says nothing about
     * this machine; such calls are as under [Offline.IGNORE]. A test whose server is on this machine needs true.
     */
    public val concernsLoopback: Boolean get() = false

    /** Calls [onChange] after each change of [snapshot], on any thread, until the subscription is closed. It must be quick. */
    public fun subscribe(onChange: () -> Unit): Subscription
}
