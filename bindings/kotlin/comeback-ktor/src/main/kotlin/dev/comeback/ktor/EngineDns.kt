// The Dns of Ktor's OkHttp engines: a look-up that hangs holds nobody beyond the end of its call, a name that was not found is asked for past what the
// platform remembers of it, and connections are told apart by age.
package dev.comeback.ktor

import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.LookUp
import dev.comeback.driver.OnThread
import okhttp3.Call
import okhttp3.Dns
import okhttp3.EventListener
import java.net.InetAddress
import java.net.UnknownHostException

/**
 * Looks up names by the app's [resolver]. OkHttp takes a pooled connection only for an address with an equal resolver; this one is equal to others of the
 * same resolver and [age]. So connections of another age stay in the app's own pool until it closes them, and no attempt begins on them. Those that were
 * made without an age also serve a client that has the resolver itself.
 *
 * @property age of the connections that an attempt may begin on; null: any will do
 */
internal class EngineDns private constructor(
    private val resolver: Dns,
    private val age: ConnectionAge?,
) : Dns by resolver {
    /** Asked of the resolver: Comeback's around the system's is equal to the system's. */
    val isSystems: Boolean get() = resolver == Dns.SYSTEM

    override fun lookup(hostname: String): List<InetAddress> {
        val inEngine = onThread.value ?: return resolver.lookup(hostname)
        return if (isSystems) asked(hostname, inEngine) else lookedUp(inEngine) { resolver.lookup(hostname) }
    }

    private fun asked(
        hostname: String,
        inEngine: InEngine,
    ): List<InetAddress> {
        val request = inEngine.request
        val memory = request.lookUps
        try {
            return lookedUp(inEngine) {
                if (request.asksAgain) memory.lookUpAgain(hostname, Dns.SYSTEM::lookup) else resolver.lookup(hostname)
            }
        } catch (notFound: UnknownHostException) {
            if (!request.asksAgain) memory.notFound(hostname)
            request.failedLookUpNanos = memory.nanosUntilAsked(hostname)
            throw notFound
        }
    }

    private fun lookedUp(
        inEngine: InEngine,
        ask: () -> List<InetAddress>,
    ): List<InetAddress> {
        val call = inEngine.call
        val lookUp = LookUp(isApps = !isSystems, ask)
        return lookUp.result(limitNanos = null) {
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
        if (other is EngineDns) resolver == other.resolver && age == other.age else age == null && resolver == other

    override fun hashCode(): Int = 31 * resolver.hashCode() + age.hashCode()

    override fun toString(): String = resolver.toString()

    companion object {
        /** What the call that runs on this thread was made for. */
        private val onThread = OnThread<InEngine>()

        /** [dns], as the engine uses it; [age]: of its connections. */
        fun of(
            dns: Dns,
            age: ConnectionAge? = null,
        ): EngineDns =
            when {
                dns !is EngineDns -> EngineDns(dns, age)
                dns.age == age -> dns
                else -> EngineDns(dns.resolver, age)
            }

        /** Runs [action], in which the call of [inEngine] looks up names on this thread. */
        inline fun <T> inside(
            inEngine: InEngine,
            action: () -> T,
        ): T = onThread.during(inEngine, action)
    }
}
