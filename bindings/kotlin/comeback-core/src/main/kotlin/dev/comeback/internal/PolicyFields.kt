// The policy builder's properties: views on the map of what was set, which becomes JSON.
package dev.comeback.internal

import kotlin.reflect.KProperty
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.DurationUnit

/** A field that is written as it is. */
internal class PlainField<T>(
    private val fields: MutableMap<String, Any?>,
    private val name: String,
) {
    @Suppress("UNCHECKED_CAST")
    operator fun getValue(
        builder: Any,
        property: KProperty<*>,
    ): T? = fields[name] as T?

    operator fun setValue(
        builder: Any,
        property: KProperty<*>,
        value: T?,
    ) {
        fields[name] = value
    }
}

/** One of a closed set of values, written in lower case. */
internal class ChoiceField<T : Enum<T>>(
    private val fields: MutableMap<String, Any?>,
    private val name: String,
    private val valueOf: (String) -> T,
) {
    operator fun getValue(
        builder: Any,
        property: KProperty<*>,
    ): T? = (fields[name] as String?)?.let { valueOf(it.uppercase()) }

    operator fun setValue(
        builder: Any,
        property: KProperty<*>,
        value: T?,
    ) {
        fields[name] = value?.name?.lowercase()
    }
}

/** A duration, written in milliseconds. */
internal class DurationField(
    private val fields: MutableMap<String, Any?>,
    private val name: String,
) {
    operator fun getValue(
        builder: Any,
        property: KProperty<*>,
    ): Duration? = (fields[name] as Number?)?.let { if (it is Long) it.milliseconds else it.toDouble().milliseconds }

    operator fun setValue(
        builder: Any,
        property: KProperty<*>,
        value: Duration?,
    ) {
        fields[name] = value?.asMillis()
    }
}

/** The same field for callers that have no [Duration], as in Java. */
internal class MillisField(
    private val fields: MutableMap<String, Any?>,
    private val name: String,
) {
    operator fun getValue(
        builder: Any,
        property: KProperty<*>,
    ): Long? = (fields[name] as Number?)?.toLong()

    operator fun setValue(
        builder: Any,
        property: KProperty<*>,
        value: Long?,
    ) {
        fields[name] = value
    }
}

/** Whole milliseconds as a Long. Anything else as a Double, which the core refuses by its rule instead of rounding it silently. */
internal fun Duration.asMillis(): Number = inWholeMilliseconds.takeIf { it.milliseconds == this } ?: toDouble(DurationUnit.MILLISECONDS)
