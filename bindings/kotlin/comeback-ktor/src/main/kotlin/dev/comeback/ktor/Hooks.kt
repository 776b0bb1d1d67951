// The app's hooks: what they throw ends here.
package dev.comeback.ktor

import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import dev.comeback.driver.orNull
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.statement.HttpResponse

/** The hooks of [config] as they were when the client was made. */
internal class Hooks(
    config: ComebackRetryConfig,
) {
    val policy: RetryPolicy = config.policy
    val maxSendCount: Int = config.maxSendCount
    val onlyThisClientSends: Boolean = config.onlyThisClientSends
    private val policyFor = config.policyFor
    private val classify = config.classify
    private val label = config.label
    private val modifyRequest = config.modifyRequest

    fun policyFor(request: HttpRequestBuilder): RetryPolicy? = policyFor?.let { hook -> orNull { hook(request) } }

    fun label(request: HttpRequestBuilder): String? = label?.let { hook -> orNull { hook(request) } }

    fun classify(
        request: HttpRequestBuilder,
        response: HttpResponse?,
        cause: Throwable?,
    ): OutcomeClass? = classify?.let { hook -> orNull { hook(request, response, cause) } }

    fun modify(
        context: ComebackModifyRequestContext,
        request: HttpRequestBuilder,
    ) {
        orNull { modifyRequest(context, request) }
    }
}
