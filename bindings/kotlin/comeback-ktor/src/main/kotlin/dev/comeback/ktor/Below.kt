// A request for which a layer further out has the call: it goes as it is, and that layer hears of it.
package dev.comeback.ktor

import dev.comeback.RetryPolicy
import dev.comeback.driver.DriverFacts
import dev.comeback.driver.InnerRequest
import dev.comeback.driver.OuterAttempt
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse
import io.ktor.http.HttpHeaders
import io.ktor.http.isSuccess

/**
 * @param outer the attempt of the layer further out
 * @param policy what this layer would act by
 * @param keyIsMade this layer made the request's key
 */
internal class Below(
    private val outer: OuterAttempt,
    private val policy: RetryPolicy,
    private val keyIsMade: Boolean,
    private val setup: Setup,
    request: HttpRequestBuilder,
) : OnItsWay {
    private val facts: DriverFacts = checkNotNull(policy.driverFacts ?: RetryPolicy.DEFAULT.driverFacts)

    /** From the start: a plugin further in may send it elsewhere before it enters the engine, or instead. */
    private val whole: InnerRequest = outer.request(policy, request.head(facts.keyHeader), keyIsMade)
    private val call = request.executionContext

    init {
        whole.goesOut()
    }

    private val madeKey = if (keyIsMade) request.attributes.getOrNull(MadeKey.KEY) else null
    private var inEngine: EngineRequest? = null
    private var innerRequest: InnerRequest? = null

    override fun enters(request: HttpRequestBuilder) {
        // From here on it is told by itself.
        if (!setup.isKnownToBeSentElsewhere) whole.ended(sentNothing = true)
        innerRequest = outer.request(policy, request.head(facts.keyHeader), keyIsMade).also { it.goesOut() }
        inEngine = setup.engine.entered(request, outer, facts, outer.path, body = null, job = null, before = inEngine)
    }

    override fun headCame(response: HttpResponse) {
        inEngine?.headCame()
        if (response.status.isSuccess()) madeKey?.succeeded(call)
        innerRequest?.ended(sentNothing = false, response.headers.getAll(HttpHeaders.RetryAfter).orEmpty())
    }

    override fun engineThrew(thrown: Throwable) {
        val inEngine = inEngine ?: return
        inEngine.threw(thrown)
        if (isOutOfTime(thrown)) inEngine.connections?.areSuspect()
        innerRequest?.ended(!setup.mayBeSentElsewhere && inEngine.sentNothing())
    }
}
