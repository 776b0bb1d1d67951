// A listener's registration, to be ended.
package dev.comeback

/** Ends a registration. [close] may be called from any thread and more than once; it never throws. */
public fun interface Subscription : AutoCloseable {
    override fun close()
}
