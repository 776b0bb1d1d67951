// For calls into code that is not ours, where no answer will do as well.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/**
 * What [action] answers; null if it throws, whatever it throws.
 *
 * @suppress
 */
@InternalComebackApi
public inline fun <T> orNull(action: () -> T): T? =
    try {
        action()
    } catch (thrown: Throwable) {
        if (thrown is InterruptedException) Thread.currentThread().interrupt()
        null
    }
