// One look-up of a name that its caller need not wait for to the end: platforms have resolvers that hang, and nothing ends them.
package dev.comeback.driver

import dev.comeback.InternalComebackApi
import dev.comeback.internal.daemonThread
import java.io.IOException
import java.io.InterruptedIOException
import java.net.InetAddress
import java.net.SocketTimeoutException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.SynchronousQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.TimeUnit.SECONDS

/**
 * Runs [ask] on a thread of its own. A look-up that its caller has left goes on alone; what it finds is dropped. So many may go on at a time; any more
 * run on the caller's thread, as without Comeback.
 *
 * @param isApps the resolver is the app's: it may make calls, which belong to the attempt of the thread that made this
 * @suppress
 */
@InternalComebackApi
public class LookUp(
    isApps: Boolean,
    private val ask: () -> List<InetAddress>,
) : Runnable {
    private val outer = if (isApps) OuterAttempt.onThisThread else null
    private val isOver = CountDownLatch(1)

    @Volatile
    private var found: List<InetAddress>? = null

    @Volatile
    private var thrown: Throwable? = null

    /**
     * What was found, if it is found within [limitNanos].
     *
     * @param hearing called on this thread once the look-up is under way: whoever ends it is to call [leave] from now on
     */
    @Throws(IOException::class)
    public fun result(
        limitNanos: Long?,
        hearing: () -> Unit,
    ): List<InetAddress> {
        try {
            THREADS.execute(this)
        } catch (_: Throwable) {
            // So many hang already, or there is no memory for a thread.
            return ask()
        }
        hearing()
        try {
            if (!isOver.await(limitNanos ?: Long.MAX_VALUE, NANOSECONDS)) throw SocketTimeoutException("timeout of a look-up")
        } catch (interrupt: InterruptedException) {
            Thread.currentThread().interrupt()
            throw InterruptedIOException("interrupted").apply { initCause(interrupt) }
        }
        thrown?.let { throw it }
        return found ?: throw IOException("Canceled")
    }

    /** Its caller waits no longer. */
    public fun leave(): Unit = isOver.countDown()

    override fun run() {
        try {
            found = OuterAttempt.inside(outer) { ask() }
        } catch (caught: Throwable) {
            thrown = caught
        } finally {
            isOver.countDown()
        }
    }

    private companion object {
        const val MOST = 64
        const val IDLE_SECONDS = 5L

        /** Without a queue: a look-up never waits for one that hangs. */
        val THREADS =
            ThreadPoolExecutor(0, MOST, IDLE_SECONDS, SECONDS, SynchronousQueue()) { daemonThread(it, "comeback-look-up") }
    }
}
