// The client's native library, which this device may not have.
package dev.comeback.client

import dev.comeback.ComebackUnavailableException
import dev.comeback.client.ffi.uniffiEnsureInitialized

/**
 * A class that failed to initialise throws another error at every later touch, without its cause on older virtual machines. So loading is tried
 * once, here, and what it threw is kept.
 */
internal object ClientLibrary {
    /** Why it cannot be used; null if it can. */
    val problem: ComebackUnavailableException? by lazy {
        try {
            uniffiEnsureInitialized()
            null
        } catch (thrown: Throwable) {
            if (thrown is VirtualMachineError) throw thrown
            ComebackUnavailableException(
                file(),
                System.getProperty("os.arch").orEmpty(),
                (thrown as? ExceptionInInitializerError)?.cause ?: thrown,
            )
        }
    }

    /** The name the generated binding looks for. */
    private fun file(): String =
        System.getProperty("uniffi.component.comeback_client.libraryOverride") ?: System.mapLibraryName("comeback_client")
}
