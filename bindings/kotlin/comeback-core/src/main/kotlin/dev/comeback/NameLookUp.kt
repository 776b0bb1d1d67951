// How a platform looks a name up again where its own resolver would repeat a failure from memory.
package dev.comeback

import java.net.InetAddress

/**
 * A [Connectivity] that knows the network may be one. All members may be used from any thread.
 *
 * @suppress
 */
@InternalComebackApi
public interface NameLookUp {
    /** Where a name is asked for at this moment, to be kept for [remembersFailureOn]; null: not known. */
    public val network: Any?

    /** Whether [lookUpAgain], asked now, may be answered from the memory of a look-up that failed on [network]. */
    public fun remembersFailureOn(network: Any?): Boolean

    /** The addresses of [host], asked for anew; null if nothing was found, or nobody could be asked. Then the client's own resolver has the word. */
    public fun lookUpAgain(host: String): List<InetAddress>?
}
