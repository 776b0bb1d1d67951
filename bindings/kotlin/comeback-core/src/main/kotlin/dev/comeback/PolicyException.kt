// A policy that cannot be: which field, which value, which rule.
package dev.comeback

/**
 * A policy was refused when it was built.
 *
 * @property field its name as in JSON, for instance `overload.base`
 * @property value the value that was refused, as text; a length with its unit, `9000 ms`; of a text that is no JSON the line that goes wrong
 * @property rule what the value would have to be; of a text that is no JSON also the line and column at which it goes wrong
 */
public class PolicyException internal constructor(
    public val field: String,
    public val value: String,
    public val rule: String,
) : IllegalArgumentException("$field = $value: $rule")
