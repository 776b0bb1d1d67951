// Timers go by the dispatcher's time, whichever dispatcher it is, and leave nothing once they are taken away.
package dev.comeback.ktor

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.DisposableHandle
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import kotlin.coroutines.CoroutineContext
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.time.Duration.Companion.seconds

@OptIn(ExperimentalCoroutinesApi::class)
class TimerTest {
    private val byTimer: CoroutineContext.(Runnable) -> DisposableHandle = { assertNotNull(runByTimer(1_500_000_001, it)) }
    private val byCoroutine: CoroutineContext.(Runnable) -> DisposableHandle = { runByCoroutine(1_500_000_001, it) }

    @Test
    fun `it runs when its time is over in the test's own time, rounded up to the millisecond`() =
        runTest {
            for (start in listOf(byTimer, byCoroutine)) {
                val began = currentTime
                val ran = CompletableDeferred<Long>()
                currentCoroutineContext().start { ran.complete(currentTime - began) }
                assertEquals(1501, ran.await())
            }
        }

    @Test
    fun `taken away in time it does not run`() =
        runTest {
            for (start in listOf(byTimer, byCoroutine)) {
                var runs = 0
                val timer = currentCoroutineContext().start { runs++ }
                delay(1.seconds)
                timer.dispose()
                delay(2.seconds)
                assertEquals(0, runs)
            }
        }

    @Test
    fun `dispatchers without timers of their own have them too`(): Unit =
        runBlocking {
            for (dispatcher in listOf(Dispatchers.IO, Dispatchers.Default, Dispatchers.Unconfined)) {
                val ran = CompletableDeferred<Unit>()
                withContext(dispatcher) { assertNotNull(currentCoroutineContext().runByTimer(1) { ran.complete(Unit) }) }
                withTimeout(30.seconds) { ran.await() }
            }
        }

    @Test
    fun `a time that is over already runs it at once`() =
        runTest {
            val ran = CompletableDeferred<Unit>()
            currentCoroutineContext().runIn(-5_000_000) { ran.complete(Unit) }
            ran.await()
            assertEquals(0, currentTime)
        }
}
