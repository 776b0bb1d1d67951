// A native library, which this device may not have.
package dev.comeback

/**
 * A class that failed to initialise throws another error at every later touch, without its cause on older virtual machines. So loading is tried
 * once, here, and what it threw is kept.
 *
 * @param name as the generated binding knows it
 * @param load loads it, and whatever else shows that it can be used
 * @suppress
 */
@InternalComebackApi
public class NativeLibrary(
    private val name: String,
    private val load: () -> Unit,
) {
    /** Why it cannot be used; null if it can. Whoever asks first loads it. */
    public val problem: ComebackUnavailableException? by lazy {
        try {
            load()
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

    /** What the generated binding looks for. */
    private fun file(): String = System.getProperty("uniffi.component.$name.libraryOverride") ?: System.mapLibraryName(name)
}
