// What a call without a response ends with.
package dev.comeback.client

import dev.comeback.FailureKind
import dev.comeback.RetryReport
import dev.comeback.StopReason
import java.io.IOException

/**
 * The call has no response to give. (If its last response was closed before a wait in which the call then ended, it is a
 * [dev.comeback.RetryStoppedException] instead.) The message names no URL, header or body. Other kinds may be added: a `when` needs an `else`.
 *
 * @property report what was tried; null if nothing was
 */
public sealed class ClientException(
    message: String,
    @Transient public val report: RetryReport?,
    cause: Throwable? = null,
) : IOException(message, cause) {
    /** Why the call was not tried again; null if no policy was asked. */
    public val reason: StopReason? get() = report?.reason

    /**
     * The last attempt got no response, or one that broke off.
     *
     * @property failure its kind; null for an answer that broke off after more of it had come than is tried again
     */
    public class Failed internal constructor(
        message: String,
        public val failure: FailureKind?,
        report: RetryReport?,
    ) : ClientException(message, report)

    /** The request can never be sent: its URL, its method or a header is not valid. */
    public class InvalidRequest internal constructor(
        message: String,
    ) : ClientException(message, null)

    /** The client was closed, or the [dev.comeback.Comeback] while the call waited. What was sent may have arrived. */
    public class Closed internal constructor(
        report: RetryReport?,
    ) : ClientException("the client was closed", report)

    /** A fault in Comeback. What was sent may have arrived. */
    public class Internal internal constructor(
        message: String,
        report: RetryReport?,
        cause: Throwable? = null,
    ) : ClientException(message, report, cause)

    /** What the client was built with is refused, for instance a user agent that no header can hold: nothing was sent, and nothing ever is. */
    public class InvalidSettings internal constructor(
        message: String,
    ) : ClientException("Comeback's HTTP client was built with what it cannot use: $message", null)

    /**
     * The client's native library cannot be used on this device. Nothing was sent: here is no HTTP client but the one in the library. Apps that want
     * to go on use another one then.
     *
     * @property file the library that was looked for
     * @property architecture of this device, as the JVM names it
     */
    public class Unavailable internal constructor(
        public val file: String,
        public val architecture: String,
        cause: Throwable,
    ) : ClientException("$file cannot be used on $architecture: $cause", null, cause)
}
