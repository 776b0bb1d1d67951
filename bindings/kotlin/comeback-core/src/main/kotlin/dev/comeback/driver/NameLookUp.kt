// A platform that looks up names on a network of its own choice, with a memory of failures for each.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import java.net.InetAddress
import java.net.UnknownHostException

/**
 * A [dev.comeback.Connectivity] that knows the network may be one. All members may be used from any thread. See [LookUpMemory].
 *
 * @suppress
 */
@InternalComebackApi
public interface NameLookUp {
    /** The network that names are looked up on now; what fails on one is not remembered on another. Null: not known. */
    public val network: Any?

    /** The addresses of [host] on [network], where a failure may be remembered; null if nobody could be asked. */
    @Throws(UnknownHostException::class)
    public fun lookUp(
        network: Any,
        host: String,
    ): List<InetAddress>?
}
