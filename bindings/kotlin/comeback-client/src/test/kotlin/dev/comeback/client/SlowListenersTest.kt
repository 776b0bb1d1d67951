// A listener that blocks holds up its own call, and no other.
package dev.comeback.client

import dev.comeback.Comeback
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import org.junit.jupiter.api.Test
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import kotlin.test.assertEquals
import kotlin.test.assertFalse

class SlowListenersTest {
    private val released = CountDownLatch(1)
    private val isHeld = CountDownLatch(1)
    private val heard = CopyOnWriteArrayList<RetryEvent>()
    private val listener =
        RetryListener { event ->
            if (event.label == "held" && event is RetryEvent.AttemptFailed) {
                isHeld.countDown()
                released.await()
            }
            heard += event
        }

    private fun <T> withClient(
        executor: Executor?,
        action: (ComebackClient) -> T,
    ): T =
        Comeback {
            listener = this@SlowListenersTest.listener
            listenerExecutor = executor
        }.use { comeback -> ComebackClient(comeback) { policy = QUICK }.use(action) }

    /** The first request fails, all others succeed. */
    private fun server() = Server { number, exchange -> exchange.answer(if (number == 1) 503 else 200, "") }

    @Test
    fun `one call's listener blocks, and ten others have their answers meanwhile`() =
        server().use { server ->
            withClient(executor = null) { client ->
                val scope = CoroutineScope(Dispatchers.IO)
                val held = scope.async { client.get(server.url) { label = "held" }.status }
                isHeld.await()
                val others = List(10) { scope.async { client.get(server.url).status } }
                try {
                    assertEquals(setOf(200), soon { others.awaitAll().toSet() })
                    assertFalse(held.isCompleted)
                } finally {
                    released.countDown()
                }
                assertEquals(200, soon { held.await() })
                // All of it, in order, before the caller had its answer.
                val kinds = heard.filter { it.label == "held" }.map { it::class }
                assertEquals<List<Any>>(
                    listOf(
                        RetryEvent.AttemptFailed::class,
                        RetryEvent.WaitPlanned::class,
                        RetryEvent.Resumed::class,
                        RetryEvent.Finished::class,
                    ),
                    kinds,
                )
            }
        }

    @Test
    fun `with an executor not even its own call waits for it`() =
        server().use { server ->
            val one = Executors.newSingleThreadExecutor()
            withClient(one) { client ->
                assertEquals(200, soon { client.get(server.url) { label = "held" }.status })
                assertEquals(1, released.count)
                released.countDown()
            }
            one.shutdown()
        }
}
