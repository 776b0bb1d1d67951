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
    /** It depends on method and idempotency key. */
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

/** Which waits end when the network comes back. A wait that the server asked for never does; a parked call's always does. */
public enum class Wake {
    /** Any drawn wait. */
    ANY,

    /** Those after a failure of the network. */
    TRANSPORT,

    /** None. */
    NONE,
}

/** What a call does if its attempt failed while there is no network. */
public enum class Offline {
    /**
     * It waits for the network until the loss is ten minutes old, then it fails. In airplane mode, and if there was no network when the monitor began, it
     * fails at once.
     */
    AUTO,

    /** It waits for the network as long as the policy's limits allow. */
    PARK,

    /** It fails at once. */
    FAIL_FAST,

    /**
     * For calls that do not go over the phone's default network but, for instance, into a LAN: what is known of the default network is ignored. Such a call
     * never parks, and the network's return does not wake it. Calls to loopback hosts are treated so by themselves; see [Connectivity.concernsLoopback].
     */
    IGNORE,
}
