// What decides how long a planned wait lasts.
package dev.comeback

/** Why a call waits before its next attempt. */
public enum class WaitReason {
    /** The drawn backoff. */
    BACKOFF,

    /** The server asked for it. */
    SERVER,

    /** A failed name look-up is cached below Comeback; asking earlier would ask nobody. */
    LOOK_UP,

    /** The network came back, and the wait was shortened to what its spacing or spread leaves. */
    EDGE,

    /** There is no network; the call is parked until there is one. */
    OFFLINE,
}
