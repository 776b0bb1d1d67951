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
    /** Whether [lookUpAgain] too may be answered from memory, as long as the network is the one on which the name was not found. */
    public val remembersFailures: Boolean

    /** The addresses of [host], asked for anew; null if nothing was found, or nobody could be asked. Then the client's own resolver has the word. */
    public fun lookUpAgain(host: String): List<InetAddress>?
}
