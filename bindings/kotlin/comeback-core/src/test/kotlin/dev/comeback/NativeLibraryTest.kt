// Loading a library: once, by whoever comes first, and never at another one's cost.
package dev.comeback

import dev.comeback.driver.NativeLibrary
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue

internal class NativeLibraryTest {
    @Test
    fun `who waits for a thread of low priority lends it his own`() {
        val (begun, goOn) = List(2) { CountDownLatch(1) }
        val library =
            NativeLibrary("none") {
                begun.countDown()
                goOn.await()
            }
        val idle = inThread { library.problem }.apply { priority = Thread.MIN_PRIORITY }
        assertTrue(begun.await(10, TimeUnit.SECONDS))
        val request = inThread { library.problem }
        request.awaitWaiting()
        assertEquals(request.priority, idle.priority)
        goOn.countDown()
        request.joinSoon()
    }

    @Test
    fun `a hundred threads load it once, and see the same`() {
        val loads = AtomicInteger()
        val library =
            NativeLibrary("none") {
                loads.incrementAndGet()
                throw UnsatisfiedLinkError("as if")
            }
        val seen =
            java.util.concurrent.ConcurrentHashMap
                .newKeySet<ComebackUnavailableException>()
        List(100) { inThread { seen += checkNotNull(library.problem) } }.forEach { it.joinSoon() }
        assertEquals(1, loads.get())
        assertEquals(1, seen.size)
        assertSame(seen.single(), library.problem)
    }

    @Test
    fun `what is asked while it is being loaded waits for nobody`() {
        lateinit var library: NativeLibrary
        library = NativeLibrary("none") { assertNull(library.problem) }
        assertNull(library.problem)
    }

    @Test
    fun `an interrupt ends no loading, and is kept`() {
        val (begun, goOn) = List(2) { CountDownLatch(1) }
        val library =
            NativeLibrary("none") {
                begun.countDown()
                goOn.await()
            }
        inThread { library.problem }
        assertTrue(begun.await(10, TimeUnit.SECONDS))
        var isInterrupted: Boolean? = null
        val request =
            inThread {
                library.problem
                isInterrupted = Thread.interrupted()
            }
        request.awaitWaiting()
        request.interrupt()
        goOn.countDown()
        request.joinSoon()
        assertEquals(true, isInterrupted)
    }

    @Test
    fun `where memory was out the next one tries`() {
        var isOut = true
        val library =
            NativeLibrary("none") {
                if (isOut) throw OutOfMemoryError("as if")
                throw UnsatisfiedLinkError("as if")
            }
        assertFailsWith<OutOfMemoryError> { library.problem }
        isOut = false
        assertNotNull(library.problem)
    }
}
