// The factory's call, as OkHttp's own calls are: what can be asked of it, and the two ways to run it.
package dev.comeback.okhttp.internal

import dev.comeback.driver.OuterAttempt
import okhttp3.Call
import okhttp3.Callback
import okhttp3.EventListener
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response
import okio.Timeout
import java.io.IOException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.RejectedExecutionException
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicReference
import kotlin.reflect.KClass

internal class FactoryCall(
    private val setup: Setup,
    private val client: OkHttpClient,
    private val original: Request,
    private val underWay: MutableSet<FactoryCall>,
) : Call {
    private val madeIn: OuterAttempt? = OuterAttempt.onThisThread ?: original.tag(OuterAttempt::class.java)

    /** Where the call was started, else where it was made: an attempt of a layer further out, or a block's. */
    var outer: OuterAttempt? = null
        private set

    private val executed = AtomicBoolean()

    @Volatile
    private var canceled = false

    /** Of the whole call. OkHttp's event sources end it by [Timeout.cancel] when their stream has opened. */
    private val timeout =
        object : Timeout() {
            override fun cancel() {
                super.cancel()
                endTimeout()
            }
        }.timeout(client.callTimeoutMillis.toLong(), MILLISECONDS)

    private var isTimeoutEnded = false

    /** The request with the tags that were put on the call. */
    private val tagged = AtomicReference(original)

    /** The request as an attempt's call gets it. */
    val asTagged: Request get() = tagged.get()
    private val listeners = CopyOnWriteArrayList<EventListener>()

    @Volatile
    private var loop: AsyncLoop? = null

    override fun request(): Request = original

    override fun isExecuted(): Boolean = executed.get()

    override fun isCanceled(): Boolean = canceled

    override fun timeout(): Timeout = timeout

    @Suppress("CloneDoesntCallSuperClone")
    override fun clone(): Call = FactoryCall(setup, client, original, underWay)

    override fun enqueue(responseCallback: Callback) = started(Enqueued(responseCallback)).launch()

    @Throws(IOException::class)
    override fun execute(): Response {
        val executed = Executed(setup.hooks.isMainThread())
        val loop = started(executed)
        loop.launch()
        return executed.await(loop)
    }

    private fun started(caller: Caller): AsyncLoop {
        check(executed.compareAndSet(false, true)) { "Already Executed" }
        underWay += this
        outer = OuterAttempt.onThisThread ?: madeIn
        return AsyncLoop(this, setup, caller).also { loop = it }
    }

    /** The caller is about to hear of the end. */
    fun isOver() {
        underWay -= this
    }

    private fun endTimeout() {
        synchronized(listeners) {
            isTimeoutEnded = true
            timeout.clearTimeout().clearDeadline()
            loop?.endTimeout()
        }
    }

    override fun cancel() {
        val attempt =
            synchronized(listeners) {
                if (canceled) return
                canceled = true
                loop?.flying
            }
        attempt?.call?.cancel()
        attempt?.leaveSoon()
        loop?.endWait()
        if (attempt == null) listeners.forEach { it.canceled(this) }
    }

    /** A timer of the client's, or an interceptor, has cancelled the attempt in flight, and with it the call. */
    fun isCancelledWithin() {
        canceled = true
    }

    override fun addEventListener(eventListener: EventListener) {
        synchronized(listeners) {
            listeners += eventListener
            loop?.flying?.call?.addEventListener(eventListener)
        }
    }

    override fun <T : Any> tag(type: KClass<T>): T? = tagged.get().tag(type)

    override fun <T> tag(type: Class<out T>): T? = tagged.get().tag(type)

    override fun <T : Any> tag(
        type: KClass<T>,
        computeIfAbsent: () -> T,
    ): T {
        while (true) {
            val before = tagged.get()
            before.tag(type)?.let { return it }
            val computed = computeIfAbsent()
            if (tagged.compareAndSet(before, before.newBuilder().tag(type, computed).build())) return computed
        }
    }

    override fun <T : Any> tag(
        type: Class<T>,
        computeIfAbsent: () -> T,
    ): T = tag(type.kotlin, computeIfAbsent)

    /** A call of the client's for attempt [number]. [leftNanos]: of the call's own timeout; null: it begins with this attempt, as OkHttp begins it. */
    fun callForAttempt(
        number: Int,
        leftNanos: Long?,
    ): Call {
        val call = client.newCall(numbered(tagged.get(), number))
        if (leftNanos != null) {
            call.timeout().timeout(leftNanos, NANOSECONDS)
        } else {
            call.timeout().timeout(timeout.timeoutNanos(), NANOSECONDS)
            if (timeout.hasDeadline()) call.timeout().deadlineNanoTime(timeout.deadlineNanoTime())
        }
        return call
    }

    /** [becomesKnown]: it is from then on that [addEventListener] and [cancel] reach the attempt by themselves. */
    fun listenTo(
        attempt: Call,
        becomesKnown: () -> Unit,
    ) {
        synchronized(listeners) {
            // A cancel before this did not see this attempt. The listeners have been told.
            if (canceled) attempt.cancel()
            if (isTimeoutEnded) attempt.timeout().clearTimeout().clearDeadline()
            listeners.forEach(attempt::addEventListener)
            becomesKnown()
        }
    }

    private inner class Enqueued(
        private val callback: Callback,
    ) : Caller {
        override val mustNotWait: Boolean get() = false

        override val mayLeave: Boolean get() = true

        override fun run(attempt: Attempt) = attempt.enqueue()

        override fun over(
            ending: Ending,
            isOnAttempt: Boolean,
        ) {
            if (isOnAttempt) return tell(ending)
            try {
                client.dispatcher.executorService.execute { tell(ending) }
            } catch (_: RejectedExecutionException) {
                tell(ending)
            }
        }

        /** What the callback calls is inside what this call is inside of. */
        private fun tell(ending: Ending) {
            OuterAttempt.inside(outer ?: return tellCallback(ending)) { tellCallback(ending) }
        }

        private fun tellCallback(ending: Ending) =
            when (ending) {
                is Ending.Answer -> {
                    callback.onResponse(this@FactoryCall, ending.response)
                }

                is Ending.Failure -> {
                    val thrown = ending.thrown
                    // As OkHttp says it; the thrown one goes on to the thread's handler, as without us.
                    callback.onFailure(this@FactoryCall, thrown as? IOException ?: IOException("canceled due to $thrown", thrown))
                }
            }
    }

    /** Runs the attempts on the thread that executes the call, and blocks it in between. */
    private class Executed(
        override val mustNotWait: Boolean,
    ) : Caller {
        override val mayLeave: Boolean get() = false

        private val attempts = LinkedBlockingQueue<Any>()

        override fun run(attempt: Attempt) {
            attempts += attempt
        }

        override fun over(
            ending: Ending,
            isOnAttempt: Boolean,
        ) {
            attempts += ending
        }

        fun await(loop: AsyncLoop): Response {
            var isInterrupted = false
            try {
                while (true) {
                    val next =
                        try {
                            attempts.poll() ?: attempts.take()
                        } catch (_: InterruptedException) {
                            isInterrupted = true
                            loop.interrupt()
                            continue
                        }
                    when (next) {
                        is Ending.Answer -> {
                            return next.response
                        }

                        is Ending.Failure -> {
                            throw next.thrown
                        }

                        is Attempt -> {
                            if (isInterrupted) Thread.currentThread().interrupt()
                            next.execute()
                        }
                    }
                }
            } finally {
                if (isInterrupted) Thread.currentThread().interrupt()
            }
        }
    }
}
