// Hosts that are this machine: what is known of the phone's network says nothing about them.
package dev.comeback.internal

import java.net.Inet4Address
import java.net.InetAddress

/**
 * Whether a request to [host] stays on this machine: `localhost` and the names below it (RFC 6761), 127.0.0.0/8 and `::1`, with or without the
 * brackets of a URL. By the name alone: nothing is looked up. The core says the same (`src/loopback.rs`); here it is asked before a first attempt,
 * which makes no native call.
 */
internal fun isLoopback(host: String): Boolean {
    val name = host.removeSuffix(".")
    return when {
        ':' in name -> {
            isLoopbackV6(name.removeSurrounding("[", "]"))
        }

        name.startsWith("127.") -> {
            isLoopbackV4(name)
        }

        else -> {
            name.endsWith(LOCALHOST, ignoreCase = true) &&
                (name.length == LOCALHOST.length || name[name.length - LOCALHOST.length - 1] == '.')
        }
    }
}

private const val LOCALHOST = "localhost"

private fun isLoopbackV4(name: String): Boolean {
    val parts = name.split('.')
    return parts.size == Inet4Address.getLoopbackAddress().address.size && parts.all { it.toUByteOrNull() != null }
}

/** A text with a colon is an address or nothing: no name is looked up for it. */
private fun isLoopbackV6(address: String): Boolean {
    contained { return InetAddress.getByName(address).isLoopbackAddress }
    return false
}
