// What an attempt's outcome means for the next one.
package dev.comeback

/**
 * The class of an attempt's outcome. Comeback's core decides it, and an app's `classify` hook may overrule it. A hook can never make a request go again
 * that must not be repeated.
 */
public enum class OutcomeClass {
    /** A response below 400, or a status that no policy names. It is delivered. */
    SUCCESS,

    /** A status the policy retries, for instance 503. */
    TRANSIENT_STATUS,

    /** Any other 4xx or 5xx. It is delivered: the response is the answer. */
    PERMANENT_STATUS,

    /** The request provably did not reach the server, for instance a refused connection. It may go again whatever its method. */
    NEVER_SENT,

    /** The request may have reached the server, for instance a read timeout. It goes again only if it may be repeated. */
    IN_DOUBT,

    /** A failure that would happen again in the next attempt, for instance a bad certificate. */
    PERMANENT_FAILURE,
}
