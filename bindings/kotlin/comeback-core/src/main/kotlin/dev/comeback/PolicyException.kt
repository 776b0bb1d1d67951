// A policy that cannot be: which field, which value, which rule.
package dev.comeback

/**
 * A policy was refused when it was built.
 *
 * @property field its name as in JSON, for instance `overload.base`
 * @property value the value that was refused, as text
 * @property rule what the value would have to be
 */
public class PolicyException(
    public val field: String,
    public val value: String,
    public val rule: String,
) : IllegalArgumentException("$field = $value: $rule")
