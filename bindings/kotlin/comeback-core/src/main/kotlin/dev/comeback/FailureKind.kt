// What kind of error ended an attempt, as its driver saw it.
package dev.comeback

/** The kind of error an attempt ended with. Which [OutcomeClass] a kind has is decided in the core. */
public enum class FailureKind {
    /** The name could not be looked up. */
    DNS,

    /** The connection was refused. */
    CONNECT_REFUSED,

    /** There is no route to the host. */
    CONNECT_UNREACHABLE,

    /** The connection was not established in time. */
    CONNECT_TIMEOUT,

    /** The TLS handshake broke off because of the network, not because of a certificate. */
    TLS_BROKEN_OFF,

    /** The server refused the HTTP/2 stream before it looked at it. */
    REFUSED_STREAM,

    /** Any failure before the request headers went out, which the driver knows for certain. */
    BEFORE_HEADERS,

    /** Nothing was received for too long. */
    READ_TIMEOUT,

    /** Nothing could be sent for too long. */
    WRITE_TIMEOUT,

    /** The connection was reset or aborted. */
    RESET,

    /** The connection ended in the middle of a message. */
    UNEXPECTED_END,

    /** The HTTP/2 stream was reset. */
    STREAM_RESET,

    /** The attempt reached its own time limit. */
    ATTEMPT_TIMEOUT,

    /** Any other I/O error of the platform or the HTTP client. */
    OTHER_IO,

    /** The server's certificate was not accepted. */
    CERTIFICATE,

    /** A certificate pin did not match. */
    PINNING,

    /** The server broke the protocol. */
    PROTOCOL,

    /** A file on this device could not be read or written. */
    LOCAL_FILE,

    /** The message could not be converted to or from an object. */
    SERIALISATION,

    /** The request's own body failed while it was written. */
    REQUEST_BODY,

    /** An exception that is neither the platform's nor the HTTP client's. Only the app knows what it means. */
    UNLISTED,
}
