// Where the listener is called: on the thread that drives the call, or where the app says.
package dev.comeback

import dev.comeback.World.Companion.RESET
import dev.comeback.World.Companion.STEADY
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.RelayedCall
import dev.comeback.driver.RequestFacts
import dev.comeback.internal.NativeCore
import java.util.concurrent.Executor
import java.util.concurrent.RejectedExecutionException
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs
import kotlin.test.assertSame

internal class ListenerExecutorTest {
    private val heard = ArrayList<RetryEvent>()
    private val tasks = ArrayDeque<Runnable>()

    private fun comeback(
        executor: Executor? = Executor(tasks::addLast),
        listener: RetryListener? = RetryListener { heard += it },
    ): Comeback {
        val time = TestTime()
        return Comeback(ManualConnectivity(time), listener, time, NativeCore, listenerExecutor = executor)
    }

    private fun session(comeback: Comeback) = CallSession(comeback, STEADY, null, RequestFacts("GET")).apply { noteAttempt() }

    private fun runTasks() {
        while (true) (tasks.removeFirstOrNull() ?: return).run()
    }

    private val toldOfACancelledCall = listOf(RetryEvent.AttemptFailed::class, RetryEvent.WaitPlanned::class, RetryEvent.Finished::class)

    @Test
    fun `without an executor the thread that drives the call tells`() {
        val on = ArrayList<Thread>()
        session(comeback(executor = null) { on += Thread.currentThread() }).succeeded()
        assertSame(Thread.currentThread(), on.single())
    }

    @Test
    fun `with one a call goes on while nothing is told, and is told in order later`() {
        val session = session(comeback())
        assertIs<NextStep.Sleep>(session.failed(RESET))
        session.cancelled(CancelKind.CALLER)
        assertEquals(emptyList(), heard)
        assertEquals(1, session.report?.attempts?.size)
        runTasks()
        assertEquals<List<Any>>(toldOfACancelledCall, heard.map { it::class })
    }

    @Test
    fun `one call is never told by two threads at a time, whatever the executor has`() {
        val comeback = comeback()
        val session = session(comeback)
        session.failed(RESET)
        session.cancelled(CancelKind.CALLER)
        assertEquals(1, tasks.size)
        session(comeback).succeeded()
        assertEquals(2, tasks.size)
    }

    @Test
    fun `calls of another library's are told there too`() {
        val call = RelayedCall(comeback(), null)
        call.attemptAbandoned()
        call.finished(null, 0, 1, 1, mayHaveArrived = true)
        assertEquals(emptyList(), heard)
        runTasks()
        assertEquals<List<Any>>(listOf(RetryEvent.AttemptAbandoned::class, RetryEvent.Finished::class), heard.map { it::class })
    }

    @Test
    fun `so is that a library cannot be used`() {
        comeback().reportUnavailable(ComebackUnavailableException("lib", "arm", UnsatisfiedLinkError()))
        assertEquals(emptyList(), heard)
        runTasks()
        assertIs<RetryEvent.Unavailable>(heard.single())
    }

    @Test
    fun `what the executor refuses is told by the call's own thread, and nothing is lost`() {
        for (thrown in listOf(RejectedExecutionException(), IllegalStateException(), OutOfMemoryError("unable to create native thread"))) {
            heard.clear()
            val session = session(comeback({ throw thrown }))
            session.failed(RESET)
            session.cancelled(CancelKind.CALLER)
            assertEquals<List<Any>>(toldOfACancelledCall, heard.map { it::class })
        }
    }

    @Test
    fun `an executor that throws after it ran the task fails no call, and tells nothing twice`() {
        val session =
            session(
                comeback({ task ->
                    task.run()
                    throw IllegalStateException()
                }),
            )
        session.failed(RESET)
        session.cancelled(CancelKind.CALLER)
        assertEquals<List<Any>>(toldOfACancelledCall, heard.map { it::class })
    }

    @Test
    fun `an error of the virtual machine in an executor's own thread is not contained, and the next event is told`() {
        var error: Error? = OutOfMemoryError("as if")
        val session =
            session(
                comeback(Runnable::run) { event ->
                    error?.let { throw it }
                    heard += event
                },
            )
        assertFailsWith<OutOfMemoryError> { session.failed(RESET) }
        error = null
        session.cancelled(CancelKind.CALLER)
        assertIs<RetryEvent.Finished>(heard.last())
    }

    @Test
    fun `without a listener the executor has nothing to do`() {
        val session = session(comeback(listener = null))
        session.failed(RESET)
        session.cancelled(CancelKind.CALLER)
        assertEquals(0, tasks.size)
    }
}
