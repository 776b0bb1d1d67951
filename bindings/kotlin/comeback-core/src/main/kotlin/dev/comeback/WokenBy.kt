// What ended a wait.
package dev.comeback

/** What ended a wait. */
public enum class WokenBy {
    /** Its time was over. */
    TIMER,

    /** The network came back. */
    EDGE,

    /** A parked call makes one attempt although there seems to be no network. */
    PROBE,
}
