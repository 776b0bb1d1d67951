// A Dns by which OkHttp tells connections apart by age, and whose look-ups hold nobody beyond the end of the call.
package dev.comeback.driver.okhttp

import dev.comeback.InternalComebackApi
import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.ConnectionAges
import dev.comeback.driver.LookUp
import dev.comeback.driver.orNull
import okhttp3.Call
import okhttp3.Dns
import okhttp3.EventListener
import okhttp3.Interceptor
import java.net.InetAddress

/**
 * Looks up names by the app's [resolver]. OkHttp takes a pooled connection only for an address with an equal Dns; this one is equal to others of its class
 * with the same resolver and [age]. So connections of another age stay in the app's own pool until it closes them, and no attempt begins on them. Those that
 * were made without an age also serve a client that has the resolver itself.
 *
 * @property age of the connections that an attempt may begin on; null: any will do
 * @suppress
 */
@InternalComebackApi
public abstract class AgedDns(
    public val resolver: Dns,
    public val age: ConnectionAge?,
) : Dns by resolver {
    /**
     * What [ask] finds, on a thread of its own, so that the thread of [call] is free when the call is cancelled, by whatever limit, or interrupted. Such a
     * look-up goes on alone; what it finds is dropped.
     *
     * @param isApps whether the resolver that is asked is the app's
     * @param limitNanos how long it may take; null: no limit
     */
    protected fun lookedUp(
        call: Call,
        isApps: Boolean,
        limitNanos: Long?,
        ask: () -> List<InetAddress>,
    ): List<InetAddress> {
        val lookUp = LookUp(isApps, ask)
        return lookUp.result(limitNanos) {
            call.addEventListener(
                object : EventListener() {
                    override fun canceled(call: Call) = lookUp.leave()
                },
            )
            // A cancel before that was not heard.
            if (call.isCanceled()) lookUp.leave()
        }
    }

    override fun equals(other: Any?): Boolean =
        if (other is AgedDns && other.javaClass === javaClass) {
            resolver == other.resolver && age == other.age
        } else {
            age == null && resolver == other
        }

    override fun hashCode(): Int = 31 * resolver.hashCode() + age.hashCode()

    override fun toString(): String = resolver.toString()
}

/**
 * This chain for an attempt that begins only on connections of the age of [dns].
 *
 * @suppress
 */
@InternalComebackApi
public fun Interceptor.Chain.onConnectionsOf(
    dns: AgedDns,
    ages: ConnectionAges,
): Interceptor.Chain {
    if (dns === this.dns) return this
    val age = dns.age
    // What a socket throws when it is closed concerns nobody.
    if (age != null && ages.isNewTo(connectionPool, age.path)) orNull { connectionPool.evictAll() }
    return withDns(dns)
}
