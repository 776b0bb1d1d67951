// The Dns of clients that Comeback acts on: a look-up that hangs holds nobody beyond the end of the call, and connections are told apart by age.
package dev.comeback.okhttp.internal

import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.OnThread
import dev.comeback.driver.okhttp.AgedDns
import okhttp3.Call
import okhttp3.Dns
import okhttp3.EventListener
import okhttp3.internal.dns.LookupDnsCall
import java.io.IOException
import java.net.InetAddress
import java.net.UnknownHostException

/** The [AgedDns] of this adapter's attempts. Inside an attempt it looks up names on a thread of its own. */
internal class AttemptDns private constructor(
    resolver: Dns,
    age: ConnectionAge?,
    private val limitNanos: Long? = null,
) : AgedDns(resolver, age) {
    /** The same for an attempt whose look-ups may take so long. */
    fun within(limitNanos: Long): AttemptDns = AttemptDns(resolver, age, limitNanos)

    override fun lookup(hostname: String): List<InetAddress> {
        val call = onThread.value ?: return resolver.lookup(hostname)
        val layer = CallLayer.find(call)
        val asked = layer?.lookUpAgain?.takeIf { resolver === Dns.SYSTEM } ?: resolver
        try {
            return lookedUp(call, isApps = asked !== Dns.SYSTEM, limitNanos) { asked.lookup(hostname) }
        } catch (notFound: UnknownHostException) {
            layer?.notFound = hostname
            throw notFound
        }
    }

    /** OkHttp 5.5 asks a resolver this way if it needs no thread to wait. */
    override fun newCall(request: Dns.Request): Dns.Call {
        val lookUp = resolver.newCall(request)
        val call = onThread.value
        return if (call == null || lookUp is LookupDnsCall) lookUp else AsyncLookUps.endedWith(call, lookUp)
    }

    companion object {
        /** The call whose attempt runs on this thread. */
        private val onThread = OnThread<Call>()

        /** Runs [action], an attempt of [call], which looks up names on this thread. */
        inline fun <T> inside(
            call: Call,
            action: () -> T,
        ): T = onThread.during(call, action)

        /** [dns], as attempts use it; [age]: of their connections. */
        fun of(
            dns: Dns,
            age: ConnectionAge? = null,
        ): AttemptDns =
            when {
                dns !is AttemptDns -> AttemptDns(dns, age)
                dns.age == age -> dns
                else -> AttemptDns(dns.resolver, age)
            }

        /** What the app has set. */
        fun resolverOf(dns: Dns): Dns = if (dns is AttemptDns) dns.resolver else dns
    }
}

/** In an object of its own, because OkHttp 5.4 does not have these types. */
private object AsyncLookUps {
    /** [lookUp], which fails when [call] is cancelled. */
    fun endedWith(
        call: Call,
        lookUp: Dns.Call,
    ): Dns.Call = Ended(call, lookUp)

    private class Ended(
        private val call: Call,
        private val lookUp: Dns.Call,
    ) : Dns.Call by lookUp {
        override fun enqueue(callback: Dns.Callback) {
            val once = Once(this, callback)
            call.addEventListener(once)
            lookUp.enqueue(once)
            // A cancel before that was not heard.
            if (call.isCanceled()) once.canceled(call)
        }
    }

    /** Hands on what comes until the end, which comes once. */
    private class Once(
        private val lookUp: Dns.Call,
        private val callback: Dns.Callback,
    ) : EventListener(),
        Dns.Callback {
        private var isOver = false

        @Synchronized
        override fun onRecords(
            call: Dns.Call,
            last: Boolean,
            records: List<Dns.Record>,
        ) {
            if (isOver) return
            isOver = last
            callback.onRecords(lookUp, last, records)
        }

        @Synchronized
        override fun onFailure(
            call: Dns.Call,
            e: IOException,
        ) {
            if (isOver) return
            isOver = true
            callback.onFailure(lookUp, e)
        }

        override fun canceled(call: Call) = onFailure(lookUp, IOException("Canceled"))
    }
}
