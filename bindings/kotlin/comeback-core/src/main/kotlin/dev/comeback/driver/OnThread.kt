// What the code that runs on a thread now is a part of.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/**
 * A value for each thread, null at first. Every call sets one and sets it back: a thread keeps its [Slot], so that this is one look-up and two writes.
 *
 * @suppress
 */
@InternalComebackApi
public class OnThread<T : Any> {
    private val slots =
        object : ThreadLocal<Array<Any?>>() {
            override fun initialValue(): Array<Any?> = arrayOfNulls(1)
        }

    /** Whether any thread was ever given a value. One that was has set this before, so it sees it without further ado. */
    private var isUsed = false

    /** This thread's value: where none was ever given, the thread is not even looked at. */
    public val value: T? get() = if (isUsed) slot().value else null

    /** This thread's. No other thread may use it. */
    public fun slot(): Slot<T> {
        if (!isUsed) isUsed = true
        return Slot(slots.get())
    }

    /** Runs [action], during which this thread has [value]. */
    public inline fun <R> during(
        value: T?,
        action: () -> R,
    ): R {
        val slot = slot()
        val before = slot.value
        slot.value = value
        try {
            return action()
        } finally {
            slot.value = before
        }
    }

    /**
     * An array of the platform's: a thread that outlives the class loader of this library keeps nothing of it.
     *
     * @suppress
     */
    @InternalComebackApi
    @JvmInline
    public value class Slot<T : Any> internal constructor(
        private val content: Array<Any?>,
    ) {
        /** What runs on the thread now. */
        public var value: T?
            @Suppress("UNCHECKED_CAST")
            get() = content[0] as T?
            set(value) {
                content[0] = value
            }
    }
}
