// Writes the fields that were set on a policy as JSON, for the core to judge.
package dev.comeback.internal

/** [value] as JSON: maps, lists, strings, booleans, numbers, null. */
internal fun json(value: Any?): String = StringBuilder().also { it.appendJson(value) }.toString()

private fun StringBuilder.appendJson(value: Any?) {
    when (value) {
        is Map<*, *> -> {
            append('{')
            value.entries.forEachIndexed { index, (name, field) ->
                if (index > 0) append(',')
                appendQuoted(name.toString())
                append(':')
                appendJson(field)
            }
            append('}')
        }

        is Iterable<*> -> {
            append('[')
            value.forEachIndexed { index, element ->
                if (index > 0) append(',')
                appendJson(element)
            }
            append(']')
        }

        // JSON has no such numbers; as text the core refuses them by name.
        is Double -> {
            if (value.isFinite()) append(value) else appendQuoted(value.toString())
        }

        is Number, is Boolean, null -> {
            append(value)
        }

        else -> {
            appendQuoted(value.toString())
        }
    }
}

private fun StringBuilder.appendQuoted(text: String) {
    append('"')
    for (character in text) {
        when {
            character == '"' || character == '\\' -> append('\\').append(character)
            character < ' ' || character.isSurrogate() -> append("\\u").append(character.code.toString(16).padStart(4, '0'))
            else -> append(character)
        }
    }
    append('"')
}
