// What code that is not ours throws must not reach a call.
package dev.comeback.internal

/** Runs [action]; what it throws ends here, unless it [endsTheVirtualMachine]. An interrupt that came out of it is not lost. */
internal inline fun contained(action: () -> Unit) {
    try {
        action()
    } catch (thrown: Throwable) {
        if (thrown.endsTheVirtualMachine()) throw thrown
        if (thrown is InterruptedException) Thread.currentThread().interrupt()
    }
}

/** Out of memory and the like concern all of the app. A stack overflow is a bug of whoever ran into it, as any other exception is. */
internal fun Throwable.endsTheVirtualMachine(): Boolean = this is VirtualMachineError && this !is StackOverflowError
