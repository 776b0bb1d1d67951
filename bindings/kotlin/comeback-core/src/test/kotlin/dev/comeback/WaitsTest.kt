// Many calls sleep; one edge ends it for all of them.
package dev.comeback

import dev.comeback.World.Companion.RESET
import dev.comeback.World.Companion.STEADY
import dev.comeback.driver.CallSession
import dev.comeback.driver.NextStep
import dev.comeback.driver.RequestFacts
import dev.comeback.driver.Wakeup
import dev.comeback.ffi.provokePanic
import dev.comeback.internal.NativeCore
import org.junit.jupiter.api.Test
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.test.assertEquals
import kotlin.test.assertIs

internal class WaitsTest {
    private class Sleeping(
        val session: CallSession,
    ) {
        val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
        var wakes = 0
        val subscription = session.wakeEarly(sleep) { wakes++ }
    }

    private fun TestCore.count(name: String) = calls.count { it == name }

    @Test
    fun `an edge asks the core once for many waits, and each is told of its own`() {
        val core = TestCore()
        val world = World(core)
        val sleeping = List(40) { Sleeping(world.session()) }
        world.connectivity.available()
        assertEquals(1, core.count("resume"))
        assertEquals(List(40) { 1 }, sleeping.map { it.wakes })
        assertEquals(40, world.heard.filterIsInstance<RetryEvent.WaitPlanned>().size)
        assertEquals(0, world.heard.filterIsInstance<RetryEvent.Resumed>().size, "told by the call, not by who told of the edge")
        for (each in sleeping) assertIs<NextStep.Go>(each.session.woken())
        assertEquals(1, core.count("resume"))
        assertEquals(List(40) { WokenBy.EDGE }, world.heard.filterIsInstance<RetryEvent.Resumed>().map { it.by })
    }

    @Test
    fun `a parked call stops at once when the network is switched off on purpose`() {
        val world = World()
        world.connectivity.available()
        world.connectivity.lost()
        val parked = Sleeping(world.session())
        world.connectivity.deliberate(true)
        assertEquals(1, parked.wakes)
        assertEquals(StopReason.Offline, assertIs<NextStep.Stop>(parked.session.woken()).reason)
    }

    @Test
    fun `a wait that an edge may end is not woken by a loss`() {
        val world = World()
        world.connectivity.available()
        val asleep = Sleeping(world.session())
        world.connectivity.lost()
        assertEquals(0, asleep.wakes)
    }

    @Test
    fun `more waits than are asked for at once all get their answer`() {
        val core = TestCore()
        val world = World(core, listening = false)
        val sleeping = List(1_000) { Sleeping(world.session()) }
        world.connectivity.available()
        val asked = core.count("resume")
        assertEquals(16, asked)
        for (each in sleeping) assertIs<NextStep.Go>(each.session.woken())
        assertEquals(asked, core.count("resume"))
    }

    @Test
    fun `where asking together panics each wait asks for itself`() {
        var panics = true
        val world =
            World(
                TestCore { name ->
                    if (name == "resume" && panics) {
                        panics = false
                        provokePanic()
                    }
                },
            )
        val sleeping = List(3) { Sleeping(world.session()) }
        world.connectivity.available()
        assertEquals(false, panics)
        assertEquals(listOf(1, 1, 1), sleeping.map { it.wakes })
        for (each in sleeping) assertIs<NextStep.Go>(each.session.woken())
    }

    @Test
    fun `an answer to an older edge is not used`() {
        val core = TestCore()
        val world = World(core)
        val sleeping = Sleeping(world.session())
        world.connectivity.available()
        sleeping.subscription.close()
        world.connectivity.available(handle = 2)
        assertEquals(1, core.count("resume"))
        assertIs<NextStep.Go>(sleeping.session.woken())
        assertEquals(2, core.count("resume"))
    }

    @Test
    fun `an answer to an earlier wait is not used`() {
        val core = TestCore()
        val time = TestTime()
        val world = World(core, time = time)
        val session = world.session(RetryPolicy(STEADY) { wake = Wake.NONE })
        val first = Sleeping(session)
        world.connectivity.available()
        assertEquals(1, core.count("resume"))
        assertIs<NextStep.Sleep>(session.woken(), "an edge does not end it")
        assertEquals(1, core.count("resume"))
        time.now = World.SECOND
        assertIs<NextStep.Go>(session.woken())
        assertEquals(2, core.count("resume"))
        assertEquals(1, first.wakes)
    }

    @Test
    fun `a wait that is over hears of nothing, and a change that is no edge wakes nobody`() {
        val world = World()
        val over = Sleeping(world.session())
        val sleeping = Sleeping(world.session())
        over.subscription.close()
        world.connectivity.lost()
        assertEquals(0, sleeping.wakes)
        world.connectivity.available()
        assertEquals(0, over.wakes)
        assertEquals(1, sleeping.wakes)
    }

    @Test
    fun `a wait that begins after its edge is told at once`() {
        val world = World()
        val session = world.session()
        val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
        world.connectivity.available()
        var wakes = 0
        session.wakeEarly(sleep) { wakes++ }
        assertEquals(1, wakes)
    }

    @Test
    fun `whoever throws keeps no other wait from hearing`() {
        val world = World()
        val sessions = List(3) { world.session() }
        var wakes = 0
        for (session in sessions) {
            session.wakeEarly(assertIs<NextStep.Sleep>(session.failed(RESET))) {
                wakes++
                error("no")
            }
        }
        world.connectivity.available()
        assertEquals(3, wakes)
    }

    @Test
    fun `all waits share one subscription, which ends with the Comeback`() {
        var open = 0
        val counting =
            object : Connectivity {
                override val snapshot = NetworkSnapshot.UNKNOWN

                override fun subscribe(onChange: () -> Unit): Subscription {
                    open++
                    return Subscription { open-- }
                }
            }
        val comeback = Comeback(counting, null, TestTime(), NativeCore)
        repeat(5) {
            val session = CallSession(comeback, STEADY, null, RequestFacts("GET"))
            session.await(assertIs<NextStep.Sleep>(session.failed(RESET)), Wakeup())
        }
        assertEquals(1, open)
        comeback.close()
        assertEquals(0, open)
    }

    @Test
    fun `calls that begin to wait while edges come lose none`() {
        val world = World(listening = false)
        val done = CountDownLatch(4)
        val lost =
            java.util.concurrent.atomic
                .AtomicInteger()
        val callers =
            List(4) {
                inThread {
                    repeat(200) {
                        val session = world.session()
                        val sleep = assertIs<NextStep.Sleep>(session.failed(RESET))
                        val woken = CountDownLatch(1)
                        session.wakeEarly(sleep) { woken.countDown() }.use {
                            if (!woken.await(10, TimeUnit.SECONDS)) lost.incrementAndGet()
                        }
                    }
                    done.countDown()
                }
            }
        var handle = 1L
        while (done.count > 0) world.connectivity.available(handle = ++handle)
        callers.forEach { it.joinSoon() }
        assertEquals(0, lost.get())
    }
}
