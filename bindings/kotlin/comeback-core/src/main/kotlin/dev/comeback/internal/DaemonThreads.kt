// Threads of Comeback's own for what calls have in common.
package dev.comeback.internal

import java.util.concurrent.Executor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit.SECONDS

/** Daemon threads, at most [most], that end when they have had nothing to do for a while. Beyond that, tasks queue. */
internal fun daemonThreads(
    name: String,
    most: Int,
): Executor =
    ThreadPoolExecutor(most, most, KEEP_ALIVE_SECONDS, SECONDS, LinkedBlockingQueue()) { task ->
        Thread(task, name).apply {
            isDaemon = true
            // Whoever starts the first one may run at a lower priority, and what ends calls must not.
            priority = Thread.NORM_PRIORITY
        }
    }.apply { allowCoreThreadTimeOut(true) }

private const val KEEP_ALIVE_SECONDS = 4L
