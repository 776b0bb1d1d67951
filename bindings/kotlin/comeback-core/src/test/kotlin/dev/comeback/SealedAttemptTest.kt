// What of an attempt goes on after it failed makes no request any more that must not arrive twice.
package dev.comeback

import dev.comeback.World.Companion.RESET
import dev.comeback.World.Companion.STEADY
import dev.comeback.driver.NextStep
import dev.comeback.driver.Outcome
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RequestHead
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs

internal class SealedAttemptTest {
    private val get = RequestHead("GET")
    private val post = RequestHead("POST")
    private val keyed = RequestHead("POST", key = listOf("the caller's"))

    private fun OuterAttempt.sends(
        head: RequestHead,
        policy: RetryPolicy? = null,
        keyIsMade: Boolean = false,
    ) = request(policy, head, keyIsMade).goesOut()

    private fun OuterAttempt.refuses(
        head: RequestHead,
        policy: RetryPolicy? = null,
        keyIsMade: Boolean = false,
    ) {
        val request = request(policy, head, keyIsMade)
        assertFailsWith<AttemptEndedException> { request.goesOut() }
        assertEquals(true, request.sentNothing)
    }

    /** An attempt of a call under [policy] that failed, and is followed by another. */
    private fun followed(policy: RetryPolicy = STEADY) =
        OuterAttempt().also {
            assertIs<NextStep.Sleep>(
                World().session(policy).failed(Outcome.failure(FailureKind.DNS, sentNothing = true), it),
            )
        }

    @Test
    fun `while an attempt goes on it sends whatever it likes`() {
        OuterAttempt().sends(post)
    }

    @Test
    fun `after it only what may be repeated`() {
        val outer = followed()
        outer.sends(get)
        outer.sends(keyed)
        outer.refuses(post)
        outer.refuses(RequestHead("PUT", conditions = listOf("\"1\"")))
        outer.refuses(keyed, keyIsMade = true)
        assertEquals(emptyList(), outer.innerRequests)
    }

    @Test
    fun `a request's own policy says whether that one may be repeated`() {
        val outer = followed()
        outer.sends(post, RetryPolicy { repeat = Repeat.ALWAYS })
        outer.refuses(get, RetryPolicy { repeat = Repeat.NEVER })
        outer.refuses(post, RetryPolicy.OFF)
    }

    @Test
    fun `the acting layer's policy vouches for all of them, or for none`() {
        followed(RetryPolicy(STEADY) { repeat = Repeat.ALWAYS }).sends(post)
        followed(RetryPolicy(STEADY) { repeat = Repeat.NEVER }).refuses(get)
    }

    @Test
    fun `what was noted before is taken into account, and may go out`() {
        val outer = OuterAttempt()
        val before = outer.request(null, post, keyIsMade = false)
        val step = World().session().failed(RESET, outer)
        assertEquals(StopReason.NotRepeatable, assertIs<NextStep.Stop>(step).reason)
        before.goesOut()
    }

    @Test
    fun `a request that comes while the core is asked waits for the answer`() {
        val outer = OuterAttempt()
        var comes: Thread? = null
        var refused: Throwable? = null
        val core =
            TestCore { call ->
                if (call == "decide") {
                    comes =
                        inThread { refused = runCatching { outer.sends(post) }.exceptionOrNull() }.also {
                            while (it.state != Thread.State.BLOCKED) check(it.isAlive) { "it did not wait" }
                        }
                }
            }
        assertIs<NextStep.Sleep>(World(core).session().failed(RESET, outer))
        comes?.joinSoon()
        assertIs<AttemptEndedException>(refused)
    }

    @Test
    fun `an attempt that is not followed by another sends what it likes, unless the caller is told that nothing has arrived`() {
        val once = RetryPolicy(STEADY) { maxAttempts = 1 }
        val arrived = OuterAttempt()
        assertIs<NextStep.Stop>(World().session(once).failed(RESET, arrived))
        arrived.sends(post)
        val answered = OuterAttempt()
        assertIs<NextStep.Deliver>(World().session().failed(Outcome.response(404), answered))
        answered.sends(post)
        val nothing = OuterAttempt()
        assertIs<NextStep.Stop>(World().session(once).failed(Outcome.failure(FailureKind.CONNECT_REFUSED, sentNothing = true), nothing))
        nothing.refuses(post)
    }

    @Test
    fun `without the library an attempt is not followed by another either`() {
        val outer = OuterAttempt()
        assertIs<NextStep.Stop>(World(TestCore.panickingIn("decide")).session().failed(RESET, outer))
        outer.sends(post)
    }

    @Test
    fun `nor does an attempt that was given up send what must not be repeated, and one that was kept does`() {
        val world = World()
        world.connectivity.available(1)
        val session = world.session()
        val outer = OuterAttempt()
        assertIs<NextStep.Keep>(session.interrupted(sentNothing = true, bodyUntouched = true, outer = outer))
        outer.sends(get)
        world.connectivity.available(2)
        assertIs<NextStep.Restart>(session.interrupted(sentNothing = true, bodyUntouched = true, outer = outer))
        outer.refuses(post)
        outer.unseal()
        outer.sends(post)
    }
}
