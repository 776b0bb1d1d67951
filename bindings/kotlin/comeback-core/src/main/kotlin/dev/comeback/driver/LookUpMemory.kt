// How to ask for a name again while the platform would only repeat that it was not found.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import java.net.Inet6Address
import java.net.InetAddress
import java.net.UnknownHostException

/**
 * The platform remembers a name that was not found, as it was written, and on Android for each network. So there are more ways to ask for one host: on the
 * default network by its name, and by the name with its final dot, which means the same to every server. This takes the first way that has not just
 * failed. The dot is for the resolver alone: TLS and the request keep the host as the URL has it. A name of one label has no such form, since with a
 * dot it would be another name; nor has an address, nor a name that is asked for by mDNS (`.local`).
 *
 * May be used from any thread.
 *
 * @param names null where the platform cannot choose a network
 * @param lengthNanos how long a failure is remembered
 * @suppress
 */
@InternalComebackApi
public class LookUpMemory internal constructor(
    private val time: Time,
    private val names: NameLookUp?,
    private val lengthNanos: () -> Long = FailedLookUps::cachedNanos,
) {
    private data class Question(
        val network: Any?,
        val name: String,
    )

    /** When a failure is forgotten. */
    private val until =
        object : LinkedHashMap<Question, Long>() {
            override fun removeEldestEntry(eldest: Map.Entry<Question, Long>): Boolean = size > MOST
        }

    /** The platform's own resolver, asked for [host] as it is written, did not find it. */
    public fun notFound(host: String): Unit = remember(Question(null, host))

    /** The addresses of [host]. [system] is the platform's own resolver. */
    @Throws(UnknownHostException::class)
    public fun lookUpAgain(
        host: String,
        system: (String) -> List<InetAddress>,
    ): List<InetAddress> {
        val question = questions(host).firstOrNull { remembered(it) == 0L } ?: Question(null, host)
        val onNetwork = question.network?.let { network -> asked(question) { names?.lookUp(network, question.name) } }
        if (onNetwork != null) return onNetwork.map { it.named(host) }
        val unnamed = if (question.network == null) question else Question(null, host)
        return asked(unnamed) { system(unnamed.name) }.map { it.named(host) }
    }

    /** How many nanoseconds it takes until [lookUpAgain] asks anybody for [host] again. */
    public fun nanosUntilAsked(host: String): Long = questions(host).minOf(::remembered)

    private fun questions(host: String): List<Question> {
        val network = orNull { names?.network }
        return listOfNotNull(host, withFinalDot(host)).map { Question(network, it) }
    }

    private inline fun <T> asked(
        question: Question,
        lookUp: () -> T,
    ): T =
        try {
            lookUp()
        } catch (notFound: UnknownHostException) {
            remember(question)
            throw notFound
        }

    private fun remember(question: Question) {
        val now = time.nanos()
        val length = lengthNanos()
        synchronized(until) {
            // What the platform remembers already it does not remember anew.
            if (remembered(question, now) == 0L) until[question] = if (now > Long.MAX_VALUE - length) Long.MAX_VALUE else now + length
        }
    }

    private fun remembered(question: Question) = time.nanos().let { now -> synchronized(until) { remembered(question, now) } }

    private fun remembered(
        question: Question,
        now: Long,
    ): Long = until[question]?.let { (it - now).coerceAtLeast(0) } ?: 0

    private fun withFinalDot(host: String): String? =
        host
            .takeIf {
                '.' in it && it.last() != '.' && ':' !in it && !it.last().isDigit() &&
                    !it.endsWith(
                        MDNS,
                        ignoreCase = true,
                    )
            }?.plus('.')

    /** An address of a link says on which one it is by more than its bytes. */
    private fun InetAddress.named(host: String) =
        if (this is Inet6Address && (scopeId != 0 || scopedInterface != null)) this else InetAddress.getByAddress(host, address)

    private companion object {
        const val MOST = 256
        const val MDNS = ".local"
    }
}
