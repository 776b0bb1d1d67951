// What connectivity told by hand tells others, and when it asks the core.
package dev.comeback

import dev.comeback.internal.NativeCore
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.atomic.AtomicBoolean
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertTrue

class ManualConnectivityTest {
    private val core = TestCore()
    private val connectivity = ManualConnectivity(TestTime(now = 5), core)

    @Test
    fun `before the first event nothing is known and nothing native is made`() {
        assertEquals(NetworkSnapshot.UNKNOWN, connectivity.snapshot)
        assertEquals(emptyList(), core.calls.toList())
    }

    @Test
    fun `facts equal to the last ones make no native call`() {
        connectivity.available(1)
        connectivity.available(1)
        connectivity.capabilities(1)
        connectivity.blocked(1, blocked = false)
        assertEquals(listOf("hub", "available"), core.calls.toList())
        connectivity.capabilities(1, suspended = true)
        connectivity.capabilities(1, suspended = true)
        connectivity.blocked(1)
        connectivity.blocked(1)
        connectivity.available(1, blocked = true, suspended = true)
        assertEquals(listOf("hub", "available", "capabilities", "blocked"), core.calls.toList())
    }

    @Test
    fun `a network switched off on purpose makes a loss old, and one native call each way`() {
        connectivity.deliberate(false)
        connectivity.available(1)
        connectivity.lost(1)
        assertEquals(5, connectivity.snapshot.since)
        connectivity.deliberate(true)
        connectivity.deliberate(true)
        assertEquals(NetworkSnapshot(NetworkState.OFFLINE, Long.MIN_VALUE, 1, 0), connectivity.snapshot)
        connectivity.deliberate(false)
        assertEquals(NetworkSnapshot(NetworkState.OFFLINE, 5, 1, 0), connectivity.snapshot)
        assertEquals(listOf("hub", "available", "lost", "deliberate", "deliberate"), core.calls.toList())
    }

    @Test
    fun `after a loss the same facts are news`() {
        connectivity.available(1)
        connectivity.lost(1)
        connectivity.available(1)
        assertEquals(NetworkSnapshot(NetworkState.ONLINE, 5, 2, 1), connectivity.snapshot)
    }

    @Test
    fun `after a failed monitor the same facts are news`() {
        connectivity.available(1)
        connectivity.failed()
        assertEquals(NetworkState.UNKNOWN, connectivity.snapshot.state)
        connectivity.available(1)
        assertEquals(NetworkState.ONLINE, connectivity.snapshot.state)
    }

    @Test
    fun `a late loss of another network changes nothing`() {
        connectivity.available(1)
        connectivity.available(2)
        connectivity.lost(1)
        assertEquals(NetworkState.ONLINE, connectivity.snapshot.state)
        connectivity.lost(2)
        assertEquals(NetworkState.OFFLINE, connectivity.snapshot.state)
    }

    @Test
    fun `what is told of another network than the default one is not taken for the default one's`() {
        connectivity.available(1)
        connectivity.capabilities(2, suspended = true)
        connectivity.blocked(2)
        assertEquals(NetworkState.ONLINE, connectivity.snapshot.state)
        connectivity.capabilities(1, suspended = true)
        assertEquals(NetworkState.BLOCKED, connectivity.snapshot.state)
    }

    @Test
    fun `a suspended network is not said to reach the internet`() {
        connectivity.available(1)
        connectivity.capabilities(1, suspended = true)
        connectivity.capabilities(1, suspended = true, validated = false)
        connectivity.available(1, suspended = true)
        assertEquals(listOf("hub", "available", "capabilities"), core.calls.toList())
    }

    @Test
    fun `subscribers hear of each change until they close, and of nothing that is none`() {
        var heard = 0
        val subscription = connectivity.subscribe { heard++ }
        connectivity.available(1)
        connectivity.lost(7)
        assertEquals(1, heard)
        subscription.close()
        subscription.close()
        connectivity.lost(1)
        assertEquals(1, heard)
    }

    @Test
    fun `a subscriber sees the change it hears of`() {
        val seen = ArrayList<NetworkState>()
        connectivity.subscribe { seen += connectivity.snapshot.state }
        connectivity.available(1)
        connectivity.lost(1)
        assertEquals(listOf(NetworkState.ONLINE, NetworkState.OFFLINE), seen)
    }

    @Test
    fun `a subscriber may unsubscribe, subscribe and tell while it is told`() {
        var heard = 0
        lateinit var subscription: Subscription
        subscription =
            connectivity.subscribe {
                heard++
                subscription.close()
                connectivity.subscribe { heard++ }
                connectivity.lost(1)
            }
        connectivity.available(1)
        assertEquals(NetworkState.OFFLINE, connectivity.snapshot.state)
        assertTrue(heard >= 2, "$heard")
    }

    @Test
    fun `thousands of subscribers all hear, whoever of them throws`() {
        val heard = AtomicInteger()
        val subscriptions =
            List(5_000) { number ->
                connectivity.subscribe {
                    heard.incrementAndGet()
                    if (number % 3 == 0) throw IllegalStateException()
                }
            }
        connectivity.restored()
        assertEquals(5_000, heard.get())
        subscriptions.forEach { it.close() }
        connectivity.restored()
        assertEquals(5_000, heard.get())
    }

    @Test
    fun `threads that race publish snapshots in the hub's order`() {
        val going = AtomicBoolean(true)
        val backwards = AtomicInteger()
        val reader =
            inThread {
                var last = 0L
                while (going.get()) {
                    val epoch = connectivity.snapshot.epoch
                    if (epoch < last) backwards.incrementAndGet()
                    last = epoch
                }
            }
        val barrier = CyclicBarrier(4)
        val writers =
            List(4) {
                inThread {
                    barrier.await()
                    repeat(500) { connectivity.restored() }
                }
            }
        writers.forEach { it.joinSoon() }
        going.set(false)
        reader.joinSoon()
        assertEquals(0, backwards.get())
        assertEquals(2_000, connectivity.snapshot.epoch)
    }

    @Test
    fun `a panic leaves the state unknown and lets nobody wait for a network`() {
        val connectivity = ManualConnectivity(TestTime(), TestCore.panickingIn("restored"))
        connectivity.available(1)
        connectivity.lost(1)
        var heard = 0
        connectivity.subscribe { heard++ }
        connectivity.restored()
        assertEquals(NetworkSnapshot(NetworkState.UNKNOWN, 0, 2, 0), connectivity.snapshot)
        assertEquals(1, heard)
        connectivity.lost(1)
        assertEquals(NetworkState.UNKNOWN, connectivity.snapshot.state)
    }

    @Test
    fun `after the end nothing is heard or asked`() {
        connectivity.available(1)
        connectivity.close()
        connectivity.close()
        connectivity.lost(1)
        assertEquals(NetworkState.ONLINE, connectivity.snapshot.state)
        assertEquals(listOf("hub", "available"), core.calls.toList())
    }

    @Test
    fun `events that race the end do no harm`() {
        repeat(100) {
            val connectivity = ManualConnectivity(TestTime(), NativeCore)
            val barrier = CyclicBarrier(3)
            val threads =
                listOf<() -> Unit>({ connectivity.restored() }, { connectivity.available(1) }, { connectivity.close() }).map { action ->
                    inThread {
                        barrier.await()
                        action()
                    }
                }
            threads.forEach { thread -> thread.joinSoon() }
            assertTrue(connectivity.snapshot.epoch in 0..2)
        }
    }

    @Test
    fun `warming up makes the hub, and tells nobody`() {
        var heard = 0
        connectivity.subscribe { heard++ }
        connectivity.warmUp()
        connectivity.warmUp()
        assertEquals(listOf("hub"), core.calls.toList())
        assertEquals(0, heard)
    }

    @Test
    fun `after a warm-up that failed nothing is known, and the first event fails no one`() {
        val broken = ManualConnectivity(TestTime(), TestCore { error("broken") })
        broken.warmUp()
        broken.available(1)
        assertEquals(NetworkState.UNKNOWN, broken.snapshot.state)
    }

    @Test
    fun `a look at the clock is asked of all who wait, and makes no native call`() {
        var heard = 0
        connectivity.subscribe { heard++ }
        connectivity.recheck()
        assertEquals(1, heard)
        assertEquals(emptyList(), core.calls.toList())
    }
}
