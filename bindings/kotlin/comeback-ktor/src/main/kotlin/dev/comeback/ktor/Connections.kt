// Keeps attempts off connections that may be dead: from before the path changed, or from before an attempt on them ended by time.
package dev.comeback.ktor

import dev.comeback.driver.ConnectionAge
import dev.comeback.driver.ConnectionAges

/**
 * The connections of one request's origin.
 *
 * @property age of those that it may begin on; null: any will do
 */
internal class Connections(
    private val ages: ConnectionAges,
    path: Long,
    private val scheme: String,
    private val host: String,
    private val port: Int,
) {
    val age: ConnectionAge? = ages.of(path, scheme, host, port)

    /** Time ended an attempt on one of them. */
    fun areSuspect(): Unit = ages.suspect(age, scheme, host, port)
}
