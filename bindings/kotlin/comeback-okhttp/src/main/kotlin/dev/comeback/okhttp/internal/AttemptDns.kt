// The Dns of clients that Comeback acts on: a look-up that hangs holds nobody beyond the end of the call, and connections are told apart by age.
package dev.comeback.okhttp.internal

import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.LookUp
import dev.comeback.driver.OnThread
import okhttp3.Call
import okhttp3.Dns
import okhttp3.EventListener
import okhttp3.internal.dns.LookupDnsCall
import java.io.IOException
import java.net.InetAddress
import java.net.UnknownHostException

/**
 * Looks up names by the app's [resolver], for attempts on a thread of its own, so that the thread of the call is free when the call is cancelled, by whatever
 * limit, or interrupted. Such a look-up goes on alone; what it finds is dropped.
 *
 * OkHttp shares a pooled connection between clients whose Dns is equal. This one is equal to others of the same resolver and [age]; connections that
 * were made by it without an age also serve a client that has the resolver itself.
 *
 * @property age of the connections that an attempt may begin on; null: any will do
 */
internal class AttemptDns private constructor(
    val resolver: Dns,
    val age: ConnectionAge?,
    private val limitNanos: Long? = null,
) : Dns {
    /** The same for an attempt whose look-ups may take so long. */
    fun within(limitNanos: Long): AttemptDns = AttemptDns(resolver, age, limitNanos)

    override fun lookup(hostname: String): List<InetAddress> {
        val call = onThread.value ?: return resolver.lookup(hostname)
        val layer = CallLayer.find(call)
        val asked = layer?.lookUpAgain?.takeIf { resolver === Dns.SYSTEM } ?: resolver
        try {
            return lookedUp(call, asked, hostname)
        } catch (notFound: UnknownHostException) {
            layer?.notFound = hostname
            throw notFound
        }
    }

    private fun lookedUp(
        call: Call,
        asked: Dns,
        hostname: String,
    ): List<InetAddress> {
        val lookUp = LookUp(isApps = asked !== Dns.SYSTEM) { asked.lookup(hostname) }
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

    /** OkHttp 5.5 asks a resolver this way if it needs no thread to wait. */
    override fun newCall(request: Dns.Request): Dns.Call {
        val lookUp = resolver.newCall(request)
        val call = onThread.value
        return if (call == null || lookUp is LookupDnsCall) lookUp else AsyncLookUps.endedWith(call, lookUp)
    }

    override fun equals(other: Any?): Boolean =
        if (other is AttemptDns) resolver == other.resolver && age == other.age else age == null && resolver == other

    override fun hashCode(): Int = 31 * resolver.hashCode() + age.hashCode()

    override fun toString(): String = resolver.toString()

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
