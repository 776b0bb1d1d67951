// What a server answered, whole.
package dev.comeback.client

import dev.comeback.RetryReport

/**
 * A response whose body was read to its end.
 *
 * @property status 200, 404, 503 …: a status is an answer, not an exception
 * @property headers names (in lower case) and values, in order
 * @property body its bytes; not a copy
 * @property report what was tried before this answer; null if the first answer was the answer
 */
public class ClientResponse internal constructor(
    public val status: Int,
    public val headers: List<Pair<String, String>>,
    public val body: ByteArray,
    public val report: RetryReport?,
) {
    /** Whether the status is 200 to 299. */
    public val isSuccessful: Boolean get() = status in 200..299

    /** The first value of this header, whatever the case of its name; null if there is none. */
    public fun header(name: String): String? = headers.firstOrNull { it.first.equals(name, ignoreCase = true) }?.second

    /** The body as UTF-8. */
    public fun text(): String = body.decodeToString()

    /** Without headers and body, which are not for logs. */
    override fun toString(): String = "ClientResponse($status, ${body.size} bytes)"
}
