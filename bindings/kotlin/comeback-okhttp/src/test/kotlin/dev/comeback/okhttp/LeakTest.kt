// No response stays open, whatever becomes of its call.
package dev.comeback.okhttp

import mockwebserver3.MockResponse
import okhttp3.Interceptor
import okhttp3.Response
import okhttp3.ResponseBody
import okio.BufferedSource
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import java.io.IOException
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

@ParameterizedClass
@EnumSource(Driver::class)
internal class LeakTest(
    private val driver: Driver,
) {
    /** Follows every response body until it is closed. */
    private class LeakCheck : Interceptor {
        val open = CopyOnWriteArrayList<Response>()
        var openAtNextAttempt = 0

        override fun intercept(chain: Interceptor.Chain): Response {
            openAtNextAttempt += open.size
            val response = chain.proceed(chain.request())
            open += response
            val body = response.body
            val followed =
                object : ResponseBody() {
                    override fun contentType() = body.contentType()

                    override fun contentLength() = body.contentLength()

                    override fun source(): BufferedSource = body.source()

                    override fun close() {
                        open -= response
                        body.close()
                    }
                }
            return response.newBuilder().body(followed).build()
        }
    }

    @Test
    fun `no response stays open but the one delivered`() =
        LoopbackFixture(driver = driver).use { ground ->
            repeat(3) { ground.server.enqueue(MockResponse(code = 503, body = "busy ".repeat(100))) }
            val leakCheck = LeakCheck()
            val client = ground.calls { addInterceptor(leakCheck) }
            client.send(ground.request()).use { assertEquals(1, leakCheck.open.size) }
            assertEquals(0, leakCheck.openAtNextAttempt)
            assertEquals(0, leakCheck.open.size)
            assertEquals(client.connectionPool.idleConnectionCount(), client.connectionPool.connectionCount())
        }

    @Test
    fun `no response stays open when a wait ends the call`() =
        LoopbackFixture(driver = driver).use { ground ->
            ground.server.enqueue(MockResponse(code = 503, body = "busy ".repeat(100)))
            val leakCheck = LeakCheck()
            val client = ground.calls { addInterceptor(leakCheck) }
            ground.time.at(0) { ground.comeback.close() }
            assertFailsWith<IOException> { client.send(ground.request()) }
            assertEquals(0, leakCheck.open.size)
            assertEquals(client.connectionPool.idleConnectionCount(), client.connectionPool.connectionCount())
        }
}
