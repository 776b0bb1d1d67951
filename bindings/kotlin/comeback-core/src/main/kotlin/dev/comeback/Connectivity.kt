// The boundary to whatever watches the network.
package dev.comeback

/**
 * What is known about the network, and who wants to hear of changes. Android's monitor is one implementation, [ManualConnectivity] another. All
 * members may be used from any thread. What an implementation throws is contained: it then counts as [NetworkState.UNKNOWN].
 */
public interface Connectivity {
    /** The newest snapshot. Reading it must be cheap: it is read before every attempt. */
    public val snapshot: NetworkSnapshot

    /**
     * Whether it concerns loopback hosts too. By default not: what is known of the phone's network says nothing about this machine, so calls to it are
     * as under [Offline.IGNORE]. For tests whose server is on this machine, where [snapshot] stands for the network between the two.
     */
    public val concernsLoopback: Boolean get() = false

    /** Calls [onChange] after each change of [snapshot], on any thread, until the subscription is closed. It must be quick. */
    public fun subscribe(onChange: () -> Unit): Subscription
}
