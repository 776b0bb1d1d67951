// What can be known of a request's body without touching it.
package dev.comeback.okhttp.internal

import okhttp3.RequestBody

/** Whether the body can be written again, byte for byte, as far as it says so itself. */
internal fun RequestBody.isReplayable(): Boolean = !isOneShot() && !isDuplex()

internal fun takesBody(method: String): Boolean = method != "GET" && method != "HEAD"
