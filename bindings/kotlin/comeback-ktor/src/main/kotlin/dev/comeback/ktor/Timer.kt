// Ends what takes too long. A coroutine that delays would do, but costs several times as much, and hardly any attempt lives to see it.
package dev.comeback.ktor

import dev.comeback.driver.roundedUpToMillis
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Delay
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.DisposableHandle
import kotlinx.coroutines.InternalCoroutinesApi
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext
import kotlin.time.Duration.Companion.nanoseconds

/** Runs [action] in [nanos], by the timers of this context's dispatcher: a test's virtual time drives it. */
internal fun CoroutineContext.runIn(
    nanos: Long,
    action: Runnable,
): DisposableHandle = runByTimer(nanos, action) ?: runByCoroutine(nanos, action)

/** As `withTimeout` does it. Null where a coming version of kotlinx.coroutines does it otherwise. */
@OptIn(InternalCoroutinesApi::class)
internal fun CoroutineContext.runByTimer(
    nanos: Long,
    action: Runnable,
): DisposableHandle? =
    try {
        val timers = this[ContinuationInterceptor] as? Delay ?: TimersOfOthers.timers
        timers?.invokeOnTimeout(roundedUpToMillis(nanos.coerceAtLeast(0)), action, this)
    } catch (_: LinkageError) {
        null
    }

internal fun CoroutineContext.runByCoroutine(
    nanos: Long,
    action: Runnable,
): DisposableHandle {
    val job =
        CoroutineScope(this).launch {
            delay(nanos.nanoseconds)
            action.run()
        }
    return DisposableHandle { job.cancel() }
}

/** For dispatchers without timers of their own, such as [Dispatchers.IO]: a limited view of a dispatcher always has some. */
@OptIn(InternalCoroutinesApi::class)
private object TimersOfOthers {
    val timers: Delay? = Dispatchers.Default.limitedParallelism(1) as? Delay
}
