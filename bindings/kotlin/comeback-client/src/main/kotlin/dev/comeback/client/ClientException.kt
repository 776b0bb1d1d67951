// What a call without a response ends with.
package dev.comeback.client

import dev.comeback.FailureKind
import dev.comeback.RetryReport
import dev.comeback.StopReason
import dev.comeback.driver.KnownFailure
import java.io.IOException

/**
 * The call has no response to give. (If its last response was closed before a wait in which the call then ended, it is a
 * [dev.comeback.RetryStoppedException] instead.) The message names no URL, header or body. Other kinds may be added: a `when` needs an `else`.
 *
 * @property report what was tried; null if nothing was tried
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
     * @property failure its kind; null if an answer broke off after more than [ComebackClient.Builder.readUpTo] bytes
     */
    public class Failed internal constructor(
        message: String,
        override val failure: FailureKind?,
        report: RetryReport?,
    ) : ClientException(message, report),
        KnownFailure

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

    /** The client was built with invalid settings, for instance a user agent that is no valid header. It never sends anything. */
    public class InvalidSettings internal constructor(
        message: String,
    ) : ClientException("Comeback's HTTP client was built with invalid settings: $message", null)

    /**
     * The client's native library cannot be used on this device. Nothing was sent, because the HTTP client is in that library. An app that wants to go on
     * needs another client.
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
