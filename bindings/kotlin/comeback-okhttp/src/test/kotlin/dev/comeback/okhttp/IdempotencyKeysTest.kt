// One key per logical call, the same on every attempt and redirect, never over the caller's, only when asked for.
package dev.comeback.okhttp

import dev.comeback.KeyForm
import dev.comeback.RetryPolicy
import dev.comeback.StopReason
import okhttp3.RequestBody.Companion.toRequestBody
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.util.UUID
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals

@ParameterizedClass
@EnumSource(Driver::class)
internal class IdempotencyKeysTest(
    private val driver: Driver,
) {
    private fun LoopbackFixture.keys(header: String = LoopbackFixture.KEY) = received().map { it.headers[header] }

    private val making = RetryPolicy { makeKey = true }

    @Test
    fun `one key serves all attempts and redirects of a call`() =
        LoopbackFixture(driver = driver).use { ground ->
            repeat(2) { ground.server.enqueue(status(503)) }
            ground.server.enqueue(status(307, "Location" to "/elsewhere"))
            assertEquals(200, ground.calls().outcomeOf(ground.post { makeIdempotencyKey() }))
            val keys = ground.keys()
            assertEquals(4, keys.size)
            assertEquals(1, keys.toSet().size)
            assertEquals(keys.first(), UUID.fromString(keys.first()).toString())
        }

    @Test
    fun `every call has its own key`() =
        LoopbackFixture(driver = driver).use { ground ->
            val client = ground.calls(making)
            repeat(5) { client.outcomeOf(ground.post()) }
            assertEquals(5, ground.keys().toSet().size)
        }

    @Test
    fun `the caller's key is never overwritten`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            ground.calls(making).outcomeOf(ground.post { header(LoopbackFixture.KEY, "mine").makeIdempotencyKey() })
            assertEquals(listOf<String?>("mine", "mine"), ground.keys())
        }

    @Test
    fun `an empty key is the caller's too, but it makes nothing repeatable`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            ground.calls(making).outcomeOf(ground.post { header(LoopbackFixture.KEY, "") })
            assertEquals(listOf<String?>(""), ground.keys())
        }

    @Test
    fun `no key is made unless policy or request ask, and then only for POST and PATCH`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.calls().outcomeOf(ground.post())
            val client = ground.calls(making)
            client.outcomeOf(ground.request())
            client.outcomeOf(ground.request("PUT", LoopbackFixture.BODY.toRequestBody()))
            assertEquals(listOf(null, null, null), ground.keys())
        }

    @Test
    fun `header and form are the policy's`() =
        LoopbackFixture(driver = driver).use { ground ->
            val policy =
                RetryPolicy {
                    keyHeader = "X-Request-Key"
                    keyForm = KeyForm.QUOTED
                    makeKey = true
                }
            ground.calls(policy).outcomeOf(ground.post())
            val key = ground.keys("X-Request-Key").single()!!
            assertEquals("\"${UUID.fromString(key.removeSurrounding("\""))}\"", key)
        }

    @Test
    fun `a retry layer outside sends the same key again, but another request of the same call has another`() =
        LoopbackFixture(driver = driver).use { ground ->
            val other = ground.request("PATCH", "another".toRequestBody())
            val client =
                ground.remember(
                    okhttp3.OkHttpClient
                        .Builder()
                        .addInterceptor { chain ->
                            chain.proceed(chain.request()).close()
                            chain.proceed(other).close()
                            chain.proceed(chain.request())
                        }.comeback(ground.comeback, making)
                        .build(),
                )
            client.outcomeOf(ground.post())
            val keys = ground.keys()
            assertEquals(keys[0], keys[2])
            assertNotEquals(keys[0], keys[1])
        }

    @Test
    fun `a second order that is built from the first one's request has a key of its own`() =
        LoopbackFixture(driver = driver).use { ground ->
            val calls = ground.calls(making)
            val first = calls.send(ground.post()).use { it.request }
            calls.outcomeOf(first.newBuilder().post("another".toRequestBody()).build())
            calls.outcomeOf(first)
            assertEquals(
                3,
                ground
                    .keys()
                    .filterNotNull()
                    .toSet()
                    .size,
            )
        }

    @Test
    fun `a request that failed is the same order when it is sent again as it is, and another with another body`() =
        LoopbackFixture(driver = driver).use { ground ->
            repeat(4) { ground.server.enqueue(status(503)) }
            val calls = ground.calls(making)
            val failed = calls.send(ground.post()).use { it.request }
            calls.outcomeOf(failed)
            assertEquals(
                1,
                ground
                    .keys()
                    .filterNotNull()
                    .toSet()
                    .size,
            )
            calls.outcomeOf(failed)
            calls.outcomeOf(failed.newBuilder().post("another".toRequestBody()).build())
            assertEquals(
                2,
                ground
                    .keys()
                    .filterNotNull()
                    .toSet()
                    .size,
            )
        }

    @Test
    fun `a copy with a key of the caller's keeps it, and one for a client that makes none goes without`() =
        LoopbackFixture(driver = driver).use { ground ->
            val calls = ground.calls(making)
            val first = calls.send(ground.post()).use { it.request }
            calls.outcomeOf(first.newBuilder().header(LoopbackFixture.KEY, "mine").build())
            ground.calls().outcomeOf(first)
            assertEquals(listOf("mine", null), ground.keys().drop(1))
        }

    @Test
    fun `409 is retried only where the policy lists it, and only with a key`() =
        LoopbackFixture(driver = driver).use { ground ->
            val inProgress = RetryPolicy { retryStatuses = setOf(409, 503) }
            ground.server.enqueue(status(409))
            assertEquals(200, ground.calls(inProgress).outcomeOf(ground.post { header(LoopbackFixture.KEY, "k") }))
            ground.server.enqueue(status(409))
            assertEquals(409, ground.calls(inProgress).outcomeOf(ground.post()))
            ground.server.enqueue(status(409))
            assertEquals(409, ground.calls().outcomeOf(ground.post { header(LoopbackFixture.KEY, "k") }))
        }

    @Test
    fun `without a key a POST that got 503 is sent once`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(status(503))
            ground.calls().send(ground.post()).use { assertEquals(StopReason.NotRepeatable, it.retryReport!!.reason) }
            assertEquals(1, ground.server.requestCount)
        }
}
