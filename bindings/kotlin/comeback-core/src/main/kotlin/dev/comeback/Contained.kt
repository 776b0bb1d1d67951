// What code that is not ours throws must not reach a call.
package dev.comeback

/** Runs [action]; what it throws ends here, except for the virtual machine's own errors (out of memory, stack overflow). */
internal inline fun contained(action: () -> Unit) {
    try {
        action()
    } catch (thrown: Throwable) {
        if (thrown is VirtualMachineError) throw thrown
    }
}
