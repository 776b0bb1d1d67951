// The Dns of Ktor's OkHttp engines: a look-up that hangs holds nobody beyond the end of its call, a name that was not found is asked for past what the
// platform remembers of it, and connections are told apart by age.
package dev.comeback.ktor

import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.OnThread
import dev.comeback.driver.okhttp.AgedDns
import okhttp3.Dns
import java.net.InetAddress
import java.net.UnknownHostException

/** The [AgedDns] of an engine. */
internal class EngineDns private constructor(
    resolver: Dns,
    age: ConnectionAge?,
) : AgedDns(resolver, age) {
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
    ): List<InetAddress> = lookedUp(inEngine.call, isApps = !isSystems, limitNanos = null, ask)

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
