// What the system throws at us must not reach the app.
package dev.comeback.android

/** What [action] gives; null if it threw, unless memory is out. */
internal inline fun <T> orNull(action: () -> T): T? =
    try {
        action()
    } catch (thrown: Throwable) {
        if (thrown is VirtualMachineError && thrown !is StackOverflowError) throw thrown
        null
    }
