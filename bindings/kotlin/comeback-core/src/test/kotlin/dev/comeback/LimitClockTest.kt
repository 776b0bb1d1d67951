// The clock of limits: when limits end, who is first, and what the clock does while nobody needs it.
package dev.comeback

import dev.comeback.driver.LimitClock
import dev.comeback.driver.LimitTimer
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.CountDownLatch
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.Executor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.locks.LockSupport
import kotlin.concurrent.thread
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertTrue

class LimitClockTest {
    private class Counted : LimitTimer() {
        val times = AtomicInteger()

        override fun reached() {
            times.incrementAndGet()
        }
    }

    /** A clock whose pauses are over at once, and move its time on. It runs as long as the test lets it. */
    private class Stepped {
        val now = AtomicLong()
        val pauses = ArrayList<Long>()
        var starts = 0

        /** What happens during the next pause. */
        var meanwhile: () -> Unit = {}
        private val tasks = LinkedBlockingQueue<Runnable>()
        val clock =
            LimitClock(
                now::get,
                { nanos ->
                    pauses += nanos
                    meanwhile()
                    now.addAndGet(nanos)
                },
                { task ->
                    starts++
                    tasks += task
                },
                Executor(Runnable::run),
            )

        /** Until the clock ends. */
        fun run() {
            while (true) (tasks.poll() ?: return).run()
        }
    }

    @Test
    fun `a limit is reached when its time is over, not before, and at most two looks later`() {
        for (length in listOf(0L, 1L, 19 * MILLI, 20 * MILLI, 21 * MILLI, 1_999 * MILLI, 7_777 * MILLI, 20_000 * MILLI)) {
            val stepped = Stepped()
            var reachedAt: Long? = null
            val timer =
                object : LimitTimer() {
                    override fun reached() {
                        reachedAt = stepped.now.get()
                    }
                }
            timer.start(length, stepped.clock)
            stepped.run()
            assertTrue(reachedAt!! in length..length + 2 * LimitClock.TICK_NANOS, "$length: $reachedAt")
            assertTrue(timer.stop())
        }
    }

    @Test
    fun `a thread that was held up makes a limit later, never earlier`() {
        val stepped = Stepped()
        val late = Counted()
        var pauses = 0
        stepped.meanwhile = {
            // Started just before the clock's thread stands still for a second.
            if (++pauses == 2) {
                late.start(500 * MILLI, stepped.clock)
                stepped.now.addAndGet(1_000 * MILLI)
            }
            if (pauses == 3) assertEquals(0, late.times.get())
        }
        Counted().start(0, stepped.clock)
        stepped.run()
        assertEquals(1, late.times.get())
    }

    @Test
    fun `a limit that was stopped is never reached, and whoever stopped it knows`() {
        val stepped = Stepped()
        val timer = Counted()
        timer.start(MILLI, stepped.clock)
        assertFalse(timer.stop())
        assertFalse(timer.stop())
        stepped.run()
        assertEquals(0, timer.times.get())
    }

    @Test
    fun `a limit without end does not run over`() {
        val stepped = Stepped()
        val endless = Counted()
        stepped.now.set(MILLI)
        var pauses = 0
        stepped.meanwhile = { if (++pauses == 300) assertFalse(endless.stop()) }
        endless.start(Long.MAX_VALUE, stepped.clock)
        stepped.run()
        assertEquals(0, endless.times.get())
    }

    @Test
    fun `what one limit throws does not keep the others`() {
        val stepped = Stepped()
        object : LimitTimer() {
            override fun reached(): Unit = error("a listener of the app's")
        }.start(0, stepped.clock)
        val other = Counted()
        other.start(MILLI, stepped.clock)
        stepped.run()
        assertEquals(1, other.times.get())
    }

    @Test
    fun `without new limits the clock looks once a second, without any it ends, and the next limit starts it again`() {
        val stepped = Stepped()
        val timer = Counted()
        timer.start(10_000 * MILLI, stepped.clock)
        stepped.run()
        assertEquals(1, timer.times.get())
        // Two seconds of ticks, then the seconds that are left, then it stays no longer.
        assertTrue(stepped.pauses.size in 105..120, "${stepped.pauses.size}")
        assertEquals(LimitClock.LONGEST_REST_NANOS, stepped.pauses.max())
        assertEquals(1, stepped.starts)

        val second = Counted()
        second.start(0, stepped.clock)
        assertEquals(2, stepped.starts)
        stepped.run()
        assertEquals(1, second.times.get())
    }

    @Test
    fun `while the clock ticks, no limit wakes it`() {
        val stepped = Stepped()
        var pauses = 0
        stepped.meanwhile = { if (++pauses < 1_000) Counted().apply { start(20_000 * MILLI, stepped.clock) }.stop() }
        Counted().start(0, stepped.clock)
        stepped.run()
        assertEquals(1, stepped.starts)
        assertEquals(LimitClock.TICK_NANOS, stepped.pauses.take(1_000).max())
    }

    @Test
    fun `a limit that is started while the clock rests wakes it`() {
        val now = AtomicLong()
        val rests = LinkedBlockingQueue<Long>()
        val clock =
            LimitClock(
                now::get,
                { nanos ->
                    if (nanos == LimitClock.TICK_NANOS) {
                        now.addAndGet(nanos)
                    } else {
                        rests += nanos
                        LockSupport.park()
                    }
                },
                { thread(isDaemon = true, block = it::run) },
                Executor(Runnable::run),
            )
        val long = Counted()
        long.start(60_000 * MILLI, clock)
        assertEquals(LimitClock.LONGEST_REST_NANOS, rests.poll(10, TimeUnit.SECONDS))
        val reached = CountDownLatch(1)
        object : LimitTimer() {
            override fun reached() = reached.countDown()
        }.start(50 * MILLI, clock)
        assertTrue(reached.await(10, TimeUnit.SECONDS))
        assertFalse(long.stop())
    }

    @Test
    fun `a limit ends on a thread that is not the clock's, and a slow one does not delay the others`() {
        val on = LinkedBlockingQueue<String>()
        val release = CountDownLatch(1)
        repeat(3) {
            object : LimitTimer() {
                override fun reached() = release.await()
            }.start(0)
        }
        object : LimitTimer() {
            override fun reached() {
                on += "${Thread.currentThread().name} ${Thread.currentThread().isDaemon} ${LimitClock.isEndingOnThisThread}"
            }
        }.start(MILLI)
        assertEquals("comeback-limit-reached true true", on.poll(10, TimeUnit.SECONDS))
        assertFalse(LimitClock.isEndingOnThisThread)
        release.countDown()
    }

    @Test
    fun `of eight threads' limits that end as they are stopped, each is either stopped or reached once`() {
        val reachedOn = ConcurrentLinkedQueue<Racing>()
        val start = CyclicBarrier(THREADS)
        val all = ConcurrentLinkedQueue<Racing>()
        // A clock that looks all the time.
        val clock =
            LimitClock(System::nanoTime, { LockSupport.parkNanos(1) }, { task -> thread(isDaemon = true, block = task::run) }, {
                it.run()
            })
        List(THREADS) { seed ->
            thread {
                val random = Random(seed)
                start.await()
                repeat(LIMITS) {
                    val timer = Racing(reachedOn)
                    all += timer
                    timer.start(random.nextLong(30_000), clock)
                    val until = System.nanoTime() + random.nextLong(60_000)
                    while (System.nanoTime() < until) Thread.onSpinWait()
                    timer.wasReached = timer.stop()
                }
            }
        }.forEach { it.join() }
        assertEquals(THREADS * LIMITS, all.size)
        // What is reached is handed over after it is marked.
        val deadline = System.nanoTime() + 10_000 * MILLI
        while (all.count { it.wasReached } > reachedOn.size && System.nanoTime() < deadline) Thread.sleep(1)
        Thread.sleep(20)
        assertEquals(all.filter { it.wasReached }.toSet(), reachedOn.toSet())
        assertEquals(reachedOn.toSet().size, reachedOn.size)
        val reached = all.count { it.wasReached }
        assertTrue(reached in 1 until all.size, "$reached of ${all.size} were reached: no race")
    }

    private class Racing(
        private val reachedOn: ConcurrentLinkedQueue<Racing>,
    ) : LimitTimer() {
        @Volatile
        var wasReached = false

        override fun reached() {
            reachedOn += this
        }
    }

    private companion object {
        const val MILLI = 1_000_000L
        const val THREADS = 8
        const val LIMITS = 5_000
    }
}
