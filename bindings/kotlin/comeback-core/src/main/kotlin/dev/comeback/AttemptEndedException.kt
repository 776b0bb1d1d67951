// What a request gets that comes too late: its attempt is over, and the next one may make it again.
package dev.comeback

import java.io.IOException

/**
 * The request was made inside an attempt that had already failed, for instance by the callback of a call of a `retry { }` block that went on after its limit. It
 * was **not sent**: the next attempt may send it too, and it must not arrive twice.
 *
 * Make what runs inside the attempt end when it is cancelled, or give the request an idempotency key that all attempts share (`attempt.key()`): a request that
 * may be repeated is sent, however late it is.
 */
public class AttemptEndedException internal constructor() :
    IOException(
        "Not sent: the attempt that made this request has failed, and the next one may make it again. " +
            "End what runs inside an attempt when it is cancelled, or give the request a key that all attempts share.",
    )
