// Android's main thread must never wait; this finds out whether it is the one that is about to.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/**
 * Android's main thread, if this is Android.
 *
 * @suppress
 */
@InternalComebackApi
public object MainThread {
    /** By reflection, because this module is compiled without Android. A stub that throws or knows no looper is no Android. */
    private val thread: Thread? =
        try {
            val looper = Class.forName("android.os.Looper")
            looper.getMethod("getMainLooper").invoke(null)?.let { looper.getMethod("getThread").invoke(it) as Thread? }
        } catch (_: ReflectiveOperationException) {
            null
        } catch (_: LinkageError) {
            null
        }

    /** Whether the calling thread is Android's main thread; always false elsewhere. */
    @JvmStatic
    public val isCurrent: Boolean
        get() = Thread.currentThread() === thread
}
