// One registration for the whole process: Android allows an app a hundred, and one is enough.
package dev.comeback.android

import android.content.Context

/** Counts who needs the monitor: the first starts it, the last ends it. */
internal object SharedMonitor {
    private var monitor: NetworkMonitor? = null
    private var holders = 0

    @Synchronized
    fun acquire(context: Context): NetworkMonitor {
        // Counted last: what could not be started is not held.
        val running = monitor ?: NetworkMonitor(context.applicationContext ?: context).also { it.start() }
        monitor = running
        holders++
        return running
    }

    @Synchronized
    fun release() {
        holders--
        if (holders > 0) return
        monitor?.close()
        monitor = null
    }
}
