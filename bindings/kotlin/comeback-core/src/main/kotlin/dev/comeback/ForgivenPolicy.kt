// The result of reading a policy from remote configuration.
package dev.comeback

/**
 * The result of [RetryPolicy.fromJsonOr].
 *
 * @property policy the policy to use: the one in the text, or the fallback
 * @property ignored fields of the text that are unknown here
 * @property problem why it is the fallback; null if it is not, or if the native library cannot be used
 */
public class ForgivenPolicy internal constructor(
    public val policy: RetryPolicy,
    public val ignored: List<String>,
    public val problem: PolicyException?,
) {
    override fun toString(): String = "$policy, ignored $ignored" + if (problem == null) "" else ", the fallback because of $problem"
}
