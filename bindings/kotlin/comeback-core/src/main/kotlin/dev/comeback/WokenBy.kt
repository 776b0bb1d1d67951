// What ended a wait.
package dev.comeback

/** What ended a wait. */
public enum class WokenBy {
    /** It was over. */
    TIMER,

    /** The network came back. */
    EDGE,

    /** A parked call tries once although no network is known. */
    PROBE,
}
