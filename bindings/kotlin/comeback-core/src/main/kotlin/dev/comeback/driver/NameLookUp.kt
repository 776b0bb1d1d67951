// How a platform looks up a name again if its own resolver would only repeat a remembered failure.
package dev.comeback.driver

import dev.comeback.Connectivity
import dev.comeback.InternalComebackApi
import java.net.InetAddress

/**
 * A [Connectivity] that knows the network may be one. All members may be used from any thread.
 *
 * @suppress
 */
@InternalComebackApi
public interface NameLookUp {
    /** The network that names are looked up on now, to be kept for [remembersFailureOn]; null: not known. */
    public val network: Any?

    /** Whether [lookUpAgain], asked now, may be answered from the memory of a look-up that failed on [network]. */
    public fun remembersFailureOn(network: Any?): Boolean

    /** The addresses of [host], from a new look-up; null if nothing was found or nobody could be asked. Then the client's own resolver is used. */
    public fun lookUpAgain(host: String): List<InetAddress>?
}
