// Hosts that are this machine: what is known of the phone's network says nothing about them.
package dev.comeback.internal

import java.net.InetAddress

/**
 * Whether a request to [host] stays on this machine: `localhost` and the names below it (RFC 6761), 127.0.0.0/8 and `::1`, with or without the
 * brackets of a URL. By the name alone: nothing is looked up. The core says the same (`src/loopback.rs`); here it is asked before a first attempt,
 * which makes no native call.
 */
internal fun isLoopback(host: String): Boolean {
    if (isPlainName(host)) return false
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

/** By its first and last letter, since every call asks: no address of this machine begins with a letter, and localhost ends with a t. */
private fun isPlainName(host: String): Boolean =
    host.isNotEmpty() && host[0] in 'a'..'z' && host[host.length - 1].let { it in 'a'..'z' && it != 't' }

private const val LOCALHOST = "localhost"

/** Four numbers, each in a byte. It makes no object, since every call asks it. */
private fun isLoopbackV4(name: String): Boolean {
    var numbers = 0
    var from = 0
    while (from <= name.length) {
        val to = name.indexOf('.', from).let { if (it < 0) name.length else it }
        if (!isByte(name, from, to)) return false
        numbers++
        from = to + 1
    }
    return numbers == 4
}

/** Whether this part of [name] is a number up to 255, without zeros before it. */
private fun isByte(
    name: String,
    from: Int,
    to: Int,
): Boolean {
    if (to - from !in 1..3 || (name[from] == '0' && to - from > 1)) return false
    var number = 0
    for (at in from until to) {
        if (name[at] !in '0'..'9') return false
        number = 10 * number + (name[at] - '0')
    }
    return number <= 255
}

/** A text with a colon is an address or nothing: no name is looked up for it. */
private fun isLoopbackV6(address: String): Boolean {
    contained { return InetAddress.getByName(address).isLoopbackAddress }
    return false
}
