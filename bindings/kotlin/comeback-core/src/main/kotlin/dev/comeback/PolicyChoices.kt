// The choices of policy fields that have a closed set of values.
package dev.comeback

/** How a wait is drawn from its window. */
public enum class Jitter {
    /** Anything from 0 to the window. */
    FULL,

    /** Anything from half the window to the window. */
    EQUAL,

    /** Anything from the base to three times the last wait, up to the cap. */
    DECORRELATED,

    /** The window itself. */
    NONE,
}

/** Which requests may be repeated although they may have reached the server. */
public enum class Repeat {
    /** By method and idempotency key. */
    AUTO,

    /** All. */
    ALWAYS,

    /** None. */
    NEVER,
}

/** How an idempotency key is written into its header. */
public enum class KeyForm {
    /** `key` */
    BARE,

    /** `"key"` */
    QUOTED,
}

/** Whether the HTTP client may re-send a request on its own, unseen by Comeback. */
public enum class ClientResends {
    KEEP,
    OFF,
}

/** Which waits end when the network comes back. A server's wait never does, a parked call always. */
public enum class Wake {
    /** Any drawn wait. */
    ANY,

    /** Those after a failure of the network. */
    TRANSPORT,

    /** None. */
    NONE,
}

/** What becomes of a call whose attempt failed while there is no network. */
public enum class Offline {
    /**
     * It is parked until the loss is ten minutes old, then fails; in airplane mode, and where there was no network when the monitor began, it fails at once.
     */
    AUTO,

    /** It is parked. */
    PARK,

    /** It fails at once. */
    FAIL_FAST,

    /**
     * Its call does not go over the phone's default network (but into a LAN, or over a network it is bound to), so nothing is known of its own: it
     * never parks, and no restored network wakes it. Calls to loopback hosts are such by themselves; see [Connectivity.concernsLoopback].
     */
    IGNORE,
}
