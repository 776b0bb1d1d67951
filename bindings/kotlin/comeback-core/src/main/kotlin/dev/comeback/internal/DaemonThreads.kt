// Threads of Comeback's own for what calls have in common: none of them has what was meant for one caller alone.
package dev.comeback.internal

import dev.comeback.driver.orNull
import java.lang.reflect.Constructor
import java.util.concurrent.Executor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit.SECONDS

/** Daemon threads, at most [most], that end when they have had nothing to do for a while. Beyond that, tasks queue. */
internal fun daemonThreads(
    name: String,
    most: Int,
): Executor =
    ThreadPoolExecutor(most, most, KEEP_ALIVE_SECONDS, SECONDS, LinkedBlockingQueue()) { daemonThread(it, name) }
        .apply { allowCoreThreadTimeOut(true) }

/**
 * A thread without the InheritableThreadLocals of the thread that happens to start it. The app's code that runs on it, a resolver or a listener, would
 * find one caller's context in every call. An older Android has no such threads; there it has them.
 */
internal fun daemonThread(
    task: Runnable,
    name: String,
): Thread {
    val thread = orNull { INHERITING_NOTHING?.newInstance(null, task, name, 0L, false) } ?: Thread(task, name)
    return thread.apply {
        isDaemon = true
        // From Java 19 on this is not inherited either, and a resolver may load services.
        orNull { contextClassLoader = Thread.currentThread().contextClassLoader }
        // Whoever starts it may run at a lower priority, and what ends calls must not.
        priority = Thread.NORM_PRIORITY
    }
}

/** Of Java 9. Null on an older Android. */
private val INHERITING_NOTHING: Constructor<Thread>? =
    orNull {
        Thread::class.java.getConstructor(
            ThreadGroup::class.java,
            Runnable::class.java,
            String::class.java,
            Long::class.javaPrimitiveType,
            Boolean::class.javaPrimitiveType,
        )
    }

private const val KEEP_ALIVE_SECONDS = 4L
