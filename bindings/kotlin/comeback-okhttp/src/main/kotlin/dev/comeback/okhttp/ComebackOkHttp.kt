// What an app may choose about Comeback on one OkHttp client.
package dev.comeback.okhttp

import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import dev.comeback.driver.MainThread
import okhttp3.Request
import okhttp3.Response
import java.io.IOException

/**
 * Hooks of one client. They are called on the thread that runs the call, by many calls at once, and should be quick. A hook that throws counts as one that
 * returned null.
 */
public class ComebackOkHttp {
    /**
     * The policies that a Retrofit method can name in [Retry], besides `default`, `read`, `payment`, `batch` and `off`. A policy with one of these names
     * replaces it.
     */
    public var policies: Map<String, RetryPolicy> = emptyMap()

    /** Chooses the policy for a request; null: the client's. A request's own ([retryPolicy]) and a method's ([Retry]) come before it. */
    public var policyFor: ((request: Request) -> RetryPolicy?)? = null

    /**
     * Overrules the class of an attempt's outcome; null: Comeback's own. Exactly one of response and exception is given. It cannot make a request go
     * again that must not be repeated, and it cannot read a body: the response it is given has none.
     */
    public var classify: ((request: Request, response: Response?, exception: IOException?) -> OutcomeClass?)? = null

    /** A name for a request in [dev.comeback.RetryEvent]s, which hold nothing of the request itself. */
    public var label: ((request: Request) -> String?)? = null

    /**
     * Set this to true if the interceptors added after Comeback, and so further in, and all network interceptors send requests through no client but this one, or only through clients
     * that have Comeback too ([RetryPolicy.OFF] is enough). Interceptors that sign, log or compress are of this kind.
     *
     * An interceptor may send a request through another client first, and only then pass it on. Comeback cannot see that. So as long as this is false and
     * the app has interceptors further in, no failure counts as "never sent", and a POST without an idempotency key goes once. Where it has only network
     * interceptors, this begins when the request reaches them, with a connection. OkHttp's own interceptors do not count.
     */
    public var onlyThisClientSends: Boolean = false

    /** For tests. */
    internal var isMainThread: () -> Boolean = { MainThread.isCurrent }
}
