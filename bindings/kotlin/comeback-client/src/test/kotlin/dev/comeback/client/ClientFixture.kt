// What the client's tests have in common.
package dev.comeback.client

import dev.comeback.Comeback
import dev.comeback.Jitter
import dev.comeback.ManualConnectivity
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration.Companion.seconds

/** Goes again soon. */
val QUICK: RetryPolicy =
    RetryPolicy {
        baseMillis = 1
        capMillis = 1
        jitter = Jitter.NONE
    }

/** Waits long enough for a test to do something meanwhile. */
val SLOW: RetryPolicy =
    RetryPolicy {
        baseMillis = 15_000
        capMillis = 15_000
        jitter = Jitter.NONE
    }

class ClientFixture(
    policy: RetryPolicy = QUICK,
    configure: ComebackClient.Builder.() -> Unit = {},
) : AutoCloseable {
    val events = CopyOnWriteArrayList<RetryEvent>()
    val link = ManualConnectivity(concernsLoopback = true)
    val comeback =
        Comeback {
            connectivity = link
            listener = RetryListener { events += it }
        }
    val client =
        ComebackClient(comeback) {
            this.policy = policy
            configure()
        }

    override fun close() {
        client.close()
        comeback.close()
        link.close()
    }
}

/** Nothing here takes long; what hangs is a fault. */
fun <T> soon(block: suspend kotlinx.coroutines.CoroutineScope.() -> T): T = runBlocking { withTimeout(60.seconds, block) }

/** Waits for what other threads are about to do. */
fun eventually(
    what: String,
    condition: () -> Boolean,
) {
    val end = System.nanoTime() + 10_000_000_000
    while (!condition()) {
        check(System.nanoTime() < end) { "never: $what" }
        Thread.sleep(1)
    }
}
