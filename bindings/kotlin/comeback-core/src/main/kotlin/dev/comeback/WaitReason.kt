// What decides how long a planned wait lasts.
package dev.comeback

/** Why a call waits before its next attempt. */
public enum class WaitReason {
    /** The drawn backoff. */
    BACKOFF,

    /** The server asked for it. */
    SERVER,

    /** The platform remembers a failed look-up. Until it forgets, a new look-up would fail without asking anybody. */
    LOOK_UP,

    /** The network came back and shortened the wait. What is left is the spread, or the distance to the call's last woken start. */
    EDGE,

    /** There is no network; the call is parked until there is one. */
    OFFLINE,
}
