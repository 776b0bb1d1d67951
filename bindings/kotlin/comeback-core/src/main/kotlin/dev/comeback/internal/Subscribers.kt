// All subscribers to a change. Thousands may come and go while it is told.
package dev.comeback.internal

import dev.comeback.Subscription
import java.util.concurrent.ConcurrentHashMap

/** Subscribing and unsubscribing take constant time and no lock. [notifyEach] tells all that subscribed before it began. */
internal class Subscribers {
    private val all = ConcurrentHashMap<Subscription, () -> Unit>()

    fun subscribe(onChange: () -> Unit): Subscription {
        val subscription =
            object : Subscription {
                override fun close() {
                    all.remove(this)
                }
            }
        all[subscription] = onChange
        return subscription
    }

    /** If one throws, the others are told all the same. */
    fun notifyEach() {
        for (onChange in all.values) contained { onChange() }
    }
}
