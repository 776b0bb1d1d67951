// A look-up that hangs holds nobody: a limit, a cancel, an interrupt or the client's own timeout ends the call.
package dev.comeback.okhttp

import dev.comeback.RetryPolicy
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.SystemTime
import okhttp3.Call
import okhttp3.Dispatcher
import okhttp3.Dns
import okhttp3.OkHttpClient
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assumptions.assumeTrue
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.io.InterruptedIOException
import java.net.InetAddress
import java.net.UnknownHostException
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.Semaphore
import java.util.concurrent.TimeUnit.MILLISECONDS
import java.util.concurrent.TimeUnit.NANOSECONDS
import java.util.concurrent.TimeUnit.SECONDS
import kotlin.concurrent.thread
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertSame
import kotlin.test.assertTrue
import kotlin.time.Duration.Companion.milliseconds

@Timeout(60)
@ParameterizedClass
@EnumSource(Driver::class)
internal class HangingLookUpTest(
    private val driver: Driver,
) {
    private val isOver = CountDownLatch(1)
    private val begun = Semaphore(0)
    private val hanging =
        Dns {
            begun.release()
            isOver.await()
            listOf(LOOPBACK)
        }

    @AfterEach
    fun end() = isOver.countDown()

    private val cut = RetryPolicy(RetryPolicy.READ) { maxElapsed = LIMIT_MILLIS.milliseconds }

    private fun on(test: (LoopbackFixture) -> Unit) = LoopbackFixture(clock = SystemTime, driver = driver).use(test)

    private fun LoopbackFixture.hangingCall(
        policy: RetryPolicy,
        callTimeoutMillis: Long = 0,
    ): Call {
        val calls =
            calls(policy) {
                dns(hanging)
                callTimeout(callTimeoutMillis, MILLISECONDS)
            }
        return calls.newCall(request(host = "name.test"))
    }

    private fun assertEndsInTime(call: Call): IOException {
        val began = System.nanoTime()
        val thrown = runCatching { call.execute() }.exceptionOrNull()
        val millis = NANOSECONDS.toMillis(System.nanoTime() - began)
        assertTrue(millis in LIMIT_MILLIS - 50..LIMIT_MILLIS + SLACK_MILLIS, "$millis ms")
        return assertIs<IOException>(thrown)
    }

    @Test
    fun `a deadline that cuts ends it`() = on { assertIs<InterruptedIOException>(assertEndsInTime(it.hangingCall(cut))) }

    @Test
    fun `an attempt's own limit ends it`() =
        on {
            assumeTrue(driver != Driver.INTERCEPTOR, "it cannot give up one attempt")
            val limited =
                RetryPolicy {
                    attemptTimeout = LIMIT_MILLIS.milliseconds
                    maxAttempts = 1
                }
            assertIs<InterruptedIOException>(assertEndsInTime(it.hangingCall(limited)))
        }

    @Test
    fun `the client's own timeout ends it`() =
        on { assertIs<InterruptedIOException>(assertEndsInTime(it.hangingCall(RetryPolicy.DEFAULT, callTimeoutMillis = LIMIT_MILLIS))) }

    @Test
    fun `a cancel ends it`() =
        on { fixture ->
            val call = fixture.hangingCall(RetryPolicy.DEFAULT)
            thread {
                begun.acquire()
                Thread.sleep(LIMIT_MILLIS)
                call.cancel()
            }
            assertEquals("Canceled", assertEndsInTime(call).message)
        }

    @Test
    fun `an interrupt ends it`() =
        on { fixture ->
            assumeTrue(driver != Driver.ENQUEUED, "nobody has that thread")
            val call = fixture.hangingCall(RetryPolicy.DEFAULT)
            val caller = Thread.currentThread()
            thread {
                begun.acquire()
                Thread.sleep(LIMIT_MILLIS)
                caller.interrupt()
            }
            assertIs<InterruptedIOException>(assertEndsInTime(call))
            assertTrue(Thread.interrupted())
        }

    @Test
    fun `a resolver that is set after Comeback, or for one call, hangs nobody either`() =
        on { fixture ->
            assumeTrue(driver == Driver.INTERCEPTOR)
            val late = fixture.client(cut) { dns(hanging) }
            assertEndsInTime(late.newCall(fixture.request(host = "name.test")))
            val outside = OkHttpClient.Builder().addInterceptor { it.withDns(hanging).proceed(it.request()) }
            val forOne = fixture.remember(outside.comeback(fixture.comeback, cut).build())
            assertEndsInTime(forOne.newCall(fixture.request(host = "name.test")))
        }

    @Test
    fun `a resolver without a thread of its own hangs nobody either`() =
        on { fixture ->
            val silent =
                object : Dns {
                    override fun lookup(hostname: String): List<InetAddress> = error("it is asked otherwise")

                    override fun newCall(request: Dns.Request): Dns.Call = Silent(request)
                }
            val calls = fixture.calls(cut) { dns(silent) }
            assertEndsInTime(calls.newCall(fixture.request(host = "name.test")))
        }

    private class Silent(
        override val request: Dns.Request,
    ) : Dns.Call {
        override fun enqueue(callback: Dns.Callback) = Unit

        override fun cancel() = Unit

        override fun isCanceled() = false
    }

    @Test
    fun `with as many hanging as may, the next name is looked up as without Comeback, and no thread stays`() =
        on { fixture ->
            val stuck =
                fixture.calls {
                    dns(hanging)
                    dispatcher(Dispatcher().apply { maxRequestsPerHost = MOST })
                }
            val callers = Executors.newCachedThreadPool()
            repeat(MOST) { callers.execute { runCatching { stuck.newCall(fixture.request(host = "name.test")).execute().close() } } }
            assertTrue(begun.tryAcquire(MOST, 10, SECONDS))
            val on = CopyOnWriteArrayList<Thread>()
            val seeing =
                Dns {
                    on += Thread.currentThread()
                    listOf(LOOPBACK)
                }
            val others = fixture.calls { dns(seeing) }
            assertEquals(200, others.outcomeOf(fixture.request(host = "name.test")))
            assertTrue(on.single().name != LOOK_UP, on.single().name)
            isOver.countDown()
            callers.shutdown()
            assertTrue(callers.awaitTermination(10, SECONDS))
            others.connectionPool.evictAll()
            assertEquals(200, others.outcomeOf(fixture.request(host = "name.test")))
            assertEquals(LOOK_UP, on.last().name)
            val until = System.nanoTime() + SECONDS.toNanos(10)
            while (Thread.getAllStackTraces().keys.any { it.name == LOOK_UP }) {
                assertTrue(System.nanoTime() < until, "threads stay")
                Thread.sleep(50)
            }
        }

    @Test
    fun `what the resolver throws comes as it is`() =
        on { fixture ->
            val thrown = UnknownHostException("nobody of that name")
            val once = RetryPolicy { maxAttempts = 1 }
            assertSame(thrown, fixture.calls(once) { dns { throw thrown } }.outcomeOf(fixture.request(host = "name.test")))
        }

    @Test
    fun `a resolver finds no other caller's inheritable thread-locals`() =
        on { fixture ->
            val user = InheritableThreadLocal<String?>()
            val found = CopyOnWriteArrayList<String?>()
            val calls =
                fixture.calls {
                    dns {
                        // Only on a thread of Comeback's: not where a thread of the dispatcher did the work.
                        if (Thread.currentThread().name == LOOK_UP) found += user.get()
                        listOf(LOOPBACK)
                    }
                }
            // More than can be idle threads of earlier tests, each with a name of its own.
            val names = List(MOST) { "user$it.test" }
            names
                .map { name ->
                    thread {
                        user.set(name)
                        calls.outcomeOf(fixture.request(host = name))
                    }
                }.forEach { it.join() }
            assertTrue(found.isNotEmpty())
            assertEquals(emptyList(), found.filterNotNull())
        }

    @Test
    fun `a resolver's own calls are inside the attempt`() =
        on { fixture ->
            val inside = CopyOnWriteArrayList<OuterAttempt?>()
            val calls =
                fixture.calls {
                    dns {
                        inside += OuterAttempt.onThisThread
                        listOf(LOOPBACK)
                    }
                }
            assertEquals(200, calls.outcomeOf(fixture.request(host = "name.test")))
            assertTrue(inside.single() != null)
        }

    @Test
    fun `a client without Comeback that has the same pool and resolver shares the connections that were made by one with it`() =
        on { fixture ->
            val resolver = Dns { listOf(LOOPBACK) }
            val plain = fixture.remember(OkHttpClient.Builder().dns(resolver).build())
            val calls =
                if (driver ==
                    Driver.INTERCEPTOR
                ) {
                    plain.newBuilder().comeback(fixture.comeback).build()
                } else {
                    fixture.comeback.callFactory(plain)
                }
            repeat(2) { assertEquals(200, calls.readWhole(fixture.request(host = "name.test"))) }
            assertEquals(200, plain.readWhole(fixture.request(host = "name.test")))
            assertEquals(listOf(0, 0, 0), fixture.received().map { it.connectionIndex })
        }

    private companion object {
        const val LIMIT_MILLIS = 400L
        const val SLACK_MILLIS = 600L
        const val MOST = 64
        const val LOOK_UP = "comeback-look-up"
    }
}
