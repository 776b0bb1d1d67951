// What an adapter adds to the self-check.
package dev.comeback.driver

import dev.comeback.ComebackUnavailableException
import dev.comeback.InternalComebackApi

/**
 * Found by [java.util.ServiceLoader], so that an app can ask before it has made a client.
 *
 * @suppress
 */
@InternalComebackApi
public interface AdapterCheck {
    /** Why the adapter cannot act on the client that is on the class path; null if it can, or if nobody knows. */
    public fun problem(): ComebackUnavailableException?
}
