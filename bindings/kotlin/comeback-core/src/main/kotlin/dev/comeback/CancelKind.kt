// Who ended a call before its retries were over.
package dev.comeback

/** Who ended a call. */
public enum class CancelKind {
    /** The app cancelled the call. */
    CALLER,

    /** The thread that waited was interrupted. */
    INTERRUPTED,

    /** The HTTP client's own timeout for the whole call. */
    CALL_TIMEOUT,

    /** [Comeback.close]. */
    CLOSED,

    /** A wait would have blocked Android's main thread. */
    MAIN_THREAD,
}
