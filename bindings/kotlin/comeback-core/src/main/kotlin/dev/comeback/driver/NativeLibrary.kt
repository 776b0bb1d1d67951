// A native library, which this device may not have.
package dev.comeback.driver

import dev.comeback.ComebackUnavailableException
import dev.comeback.InternalComebackApi
import dev.comeback.internal.contained
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicReference

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
    private class Loading(
        val thread: Thread,
    ) {
        val isOver = CountDownLatch(1)
        var problem: ComebackUnavailableException? = null
    }

    /** The one attempt to load it. */
    private val loading = AtomicReference<Loading>()

    /**
     * Why it cannot be used; null if it can. The first thread that asks loads it and the others wait. If that thread has a low priority, it gets the priority of
     * the waiting ones, so that no request waits behind it.
     */
    public val problem: ComebackUnavailableException?
        get() {
            while (true) {
                val other = loading.get()
                if (other == null) {
                    val own = Loading(Thread.currentThread())
                    if (loading.compareAndSet(null, own)) return load(own)
                } else {
                    if (other.isOver.count > 0) await(other)
                    // Memory was out. The next thread tries again.
                    if (loading.get() === other) return other.problem
                }
            }
        }

    private fun load(own: Loading): ComebackUnavailableException? {
        try {
            load()
        } catch (thrown: Throwable) {
            if (thrown is VirtualMachineError) {
                loading.set(null)
                throw thrown
            }
            val cause = (thrown as? ExceptionInInitializerError)?.cause ?: thrown
            own.problem = ComebackUnavailableException(file(), System.getProperty("os.arch").orEmpty(), cause)
        } finally {
            own.isOver.countDown()
        }
        return own.problem
    }

    /** As for a lock: an interrupt ends no loading. */
    private fun await(other: Loading) {
        // What is asked while it is being loaded is part of the loading.
        if (other.thread === Thread.currentThread()) return
        hurry(other.thread)
        var isInterrupted = false
        while (true) {
            try {
                other.isOver.await()
                break
            } catch (_: InterruptedException) {
                isInterrupted = true
            }
        }
        if (isInterrupted) Thread.currentThread().interrupt()
    }

    /** What the generated binding looks for. */
    private fun file(): String = System.getProperty("uniffi.component.$name.libraryOverride") ?: System.mapLibraryName(name)
}

/** Whoever waits for [thread] waits for one of its own priority, at least. */
internal fun hurry(thread: Thread) {
    val own = Thread.currentThread().priority
    if (thread.priority < own) contained { thread.priority = own }
}
