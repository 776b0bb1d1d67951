// What one call has to do where an app's code may block.
package dev.comeback.internal

import dev.comeback.driver.Time
import dev.comeback.driver.orNull

/** Runs tasks in their order and one at a time, on a thread that is not the calling one. Another call's tasks do not wait for them. */
internal class InTurn(
    private val time: Time,
) : Runnable {
    private val tasks = ArrayDeque<() -> Unit>()
    private var isRunning = false

    fun add(task: () -> Unit) {
        synchronized(tasks) {
            tasks += task
            if (isRunning) return
            isRunning = true
        }
        orNull { time.schedule(Long.MIN_VALUE, this) } ?: run()
    }

    override fun run() {
        while (true) {
            val task =
                synchronized(tasks) {
                    tasks.removeFirstOrNull().also { isRunning = it != null }
                } ?: return
            // An error of the virtual machine in an app's code must not keep the call from its end.
            orNull(task)
        }
    }
}
