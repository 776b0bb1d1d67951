// Finds the policy that a Retrofit method asks for. Retrofit is optional: without it this is never touched.
package dev.comeback.okhttp.internal

import dev.comeback.PolicyException
import dev.comeback.RetryPolicy
import dev.comeback.okhttp.Retry
import okhttp3.Request
import retrofit2.Invocation
import java.io.IOException
import java.lang.reflect.Method
import java.util.concurrent.ConcurrentHashMap

/** Null without Retrofit. */
internal fun retryAnnotations(named: Map<String, RetryPolicy>): RetryAnnotations? =
    try {
        RetryAnnotations(named, Invocation::class.java)
    } catch (_: LinkageError) {
        null
    }

internal class RetryAnnotations(
    named: Map<String, RetryPolicy>,
    private val invocation: Class<Invocation>,
) {
    private val named = PRESETS + named

    /** Compiled once for each method. */
    private val byMethod = ConcurrentHashMap<Method, Choice>()

    /** [policy]: null if the method says nothing; [problem]: what is wrong with what it says. */
    private class Choice(
        val policy: RetryPolicy?,
        val problem: String? = null,
        val cause: PolicyException? = null,
    )

    /** Null if no Retrofit method is behind [request], or one that says nothing. */
    @Throws(IOException::class)
    fun policyFor(request: Request): RetryPolicy? {
        val method = request.tag(invocation)?.method() ?: return null
        val choice = byMethod[method] ?: chosenBy(method).also { byMethod[method] = it }
        if (choice.problem != null) throw IOException(choice.problem, choice.cause)
        return choice.policy
    }

    private fun chosenBy(method: Method): Choice {
        val retry = method.getAnnotation(Retry::class.java) ?: return Choice(null)
        val where = "@Retry on ${method.declaringClass.name}.${method.name}"
        val base =
            named[retry.policy]
                ?: return Choice(null, "$where: there is no policy \"${retry.policy}\"; known are ${named.keys.sorted().joinToString()}")
        return try {
            Choice(withValues(base, retry))
        } catch (invalid: PolicyException) {
            Choice(null, "$where: ${invalid.message}", invalid)
        }
    }

    private fun withValues(
        base: RetryPolicy,
        retry: Retry,
    ): RetryPolicy {
        val values = listOf(retry.maxElapsedMillis, retry.attemptTimeoutMillis, retry.baseMillis, retry.capMillis)
        if (retry.maxAttempts == Int.MIN_VALUE && values.all { it == Long.MIN_VALUE }) return base
        val builder = RetryPolicy.builder(base)
        if (retry.maxAttempts != Int.MIN_VALUE) builder.maxAttempts = retry.maxAttempts
        retry.maxElapsedMillis.ifGiven { builder.maxElapsedMillis = it }
        retry.attemptTimeoutMillis.ifGiven { builder.attemptTimeoutMillis = it }
        retry.baseMillis.ifGiven { builder.baseMillis = it }
        retry.capMillis.ifGiven { builder.capMillis = it }
        return builder.build()
    }

    private inline fun Long.ifGiven(action: (Long) -> Unit) {
        if (this != Long.MIN_VALUE) action(this)
    }

    private companion object {
        val PRESETS =
            mapOf(
                "default" to RetryPolicy.DEFAULT,
                "read" to RetryPolicy.READ,
                "payment" to RetryPolicy.PAYMENT,
                "batch" to RetryPolicy.BATCH,
                "off" to RetryPolicy.OFF,
            )
    }
}
