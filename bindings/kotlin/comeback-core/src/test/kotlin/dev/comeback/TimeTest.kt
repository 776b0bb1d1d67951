// How threads wait and are woken, and which clocks count.
package dev.comeback

import dev.comeback.driver.MainThread
import dev.comeback.driver.SystemTime
import dev.comeback.driver.Wakeup
import dev.comeback.driver.nanosUntil
import java.lang.reflect.Modifier
import java.util.concurrent.CountDownLatch
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertTrue

class TimeTest {
    @Test
    fun `a wake before the wait is kept, and used up by it`() {
        val wakeup = Wakeup()
        wakeup.wake()
        wakeup.wake()
        assertTrue(SystemTime.await(wakeup, SystemTime.nanos() + HOUR))
        assertFalse(SystemTime.await(wakeup, SystemTime.nanos()))
    }

    @Test
    fun `a wake from another thread ends the wait`() {
        val wakeup = Wakeup()
        var woken = false
        val thread = inThread { woken = SystemTime.await(wakeup, SystemTime.nanos() + HOUR) }
        thread.awaitWaiting()
        wakeup.wake()
        thread.joinSoon()
        assertTrue(woken)
    }

    @Test
    fun `a wait ends at its time and not before`() {
        val until = SystemTime.nanos() + 5_000_000
        assertFalse(SystemTime.await(Wakeup(), until))
        assertTrue(SystemTime.nanos() >= until)
    }

    @Test
    fun `a wait for an instant that is over or out of reach does not go wrong`() {
        assertFalse(SystemTime.await(Wakeup(), Long.MIN_VALUE))
        val wakeup = Wakeup()
        val thread = inThread { SystemTime.await(wakeup, Long.MAX_VALUE) }
        thread.awaitWaiting()
        wakeup.wake()
        thread.joinSoon()
        assertEquals(Long.MAX_VALUE, nanosUntil(Long.MAX_VALUE, -5))
        assertEquals(0, nanosUntil(Long.MIN_VALUE, 5))
        assertEquals(3, nanosUntil(Long.MIN_VALUE + 3, Long.MIN_VALUE))
    }

    @Test
    fun `an interrupt ends a wait, be it before, and even where a wake is at hand`() {
        val wakeup = Wakeup()
        wakeup.wake()
        Thread.currentThread().interrupt()
        assertFailsWith<InterruptedException> { SystemTime.await(wakeup, SystemTime.nanos() + HOUR) }
        assertFalse(Thread.interrupted())

        var thrown: Throwable? = null
        val thread = inThread { thrown = runCatching { SystemTime.await(Wakeup(), SystemTime.nanos() + HOUR) }.exceptionOrNull() }
        thread.awaitWaiting()
        thread.interrupt()
        thread.joinSoon()
        assertIs<InterruptedException>(thrown)
    }

    @Test
    fun `an action is run on a daemon thread, at its time and not before`() {
        val ran = LinkedBlockingQueue<Thread>()
        val until = SystemTime.nanos() + 5_000_000
        var isEarly = false
        SystemTime.schedule(until) {
            isEarly = SystemTime.nanos() < until
            ran += Thread.currentThread()
        }
        val thread = ran.poll(10, TimeUnit.SECONDS)!!
        assertFalse(isEarly)
        assertTrue(thread.isDaemon)
        assertEquals(Thread.NORM_PRIORITY, thread.priority)
    }

    @Test
    fun `actions that block or throw keep no other from running`() {
        val released = CountDownLatch(1)
        val ran = LinkedBlockingQueue<String>()
        try {
            repeat(15) { SystemTime.schedule(Long.MIN_VALUE) { released.await() } }
            SystemTime.schedule(Long.MIN_VALUE) { error("contained") }
            SystemTime.schedule(Long.MIN_VALUE) { ran += "at once" }
            SystemTime.schedule(SystemTime.nanos() + 5_000_000) { ran += "in time" }
            assertEquals("at once", ran.poll(10, TimeUnit.SECONDS))
            assertEquals("in time", ran.poll(10, TimeUnit.SECONDS))
        } finally {
            released.countDown()
        }
    }

    @Test
    fun `an action that is taken back does not run`() {
        val ran = LinkedBlockingQueue<String>()
        val until = SystemTime.nanos() + 20_000_000
        SystemTime.schedule(until) { ran += "taken back" }.close()
        SystemTime.schedule(Long.MAX_VALUE) { ran += "out of reach" }.close()
        SystemTime.schedule(until + 1) { ran += "after it" }
        assertEquals("after it", ran.poll(10, TimeUnit.SECONDS))
    }

    @Test
    fun `on a plain JVM, and beside stubs that throw, the clock is the JVM's and no thread is Android's main thread`() {
        val before = System.nanoTime()
        val now = SystemTime.nanos()
        assertTrue(now in before..System.nanoTime())
        assertFalse(MainThread.isCurrent)
    }

    @Test
    fun `on Android the clock is the one that goes on while the device sleeps`() {
        val android = AndroidLoader()
        val clock = android.get("android.os.SystemClock", "elapsedRealtimeNanos")
        android.pretend()
        assertEquals(12_345L, clock())
        val time = android.get("dev.comeback.driver.SystemTime", "nanos")
        assertEquals(12_345L, time())
    }

    @Test
    fun `on Android the main looper's thread is the main thread`() {
        val android = AndroidLoader()
        android.pretend()
        val isMain = android.get("dev.comeback.driver.MainThread", "isCurrent")
        assertEquals(true, isMain())
        var elsewhere: Any? = null
        inThread { elsewhere = isMain() }.joinSoon()
        assertEquals(false, elsewhere)
    }

    private class AndroidLoader : FreshLoader() {
        /** The calling thread is the main thread now, and the clock says 12345. */
        fun pretend() {
            loadClass("android.os.Looper").getMethod("pretend", Thread::class.java).invoke(null, Thread.currentThread())
            loadClass("android.os.SystemClock").getMethod("pretend", Long::class.java).invoke(null, 12_345L)
        }

        fun get(
            type: String,
            method: String,
        ): () -> Any? {
            val loaded = loadClass(type)
            return {
                val found = loaded.getMethod(method)
                val target = if (Modifier.isStatic(found.modifiers)) null else loaded.getField("INSTANCE").get(null)
                found.invoke(target)
            }
        }
    }

    private companion object {
        const val HOUR = 3_600_000_000_000L
    }
}
