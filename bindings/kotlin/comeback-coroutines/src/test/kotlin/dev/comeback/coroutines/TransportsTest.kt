// retry { } around other people's transports: what they throw, and what a server answered through Retrofit.
package dev.comeback.coroutines

import dev.comeback.Comeback
import dev.comeback.StopReason
import dev.comeback.coroutines.RunTestFixture.Companion.STEADY
import dev.comeback.retryReport
import dev.comeback.testing.schedulerTime
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import okhttp3.Protocol
import okhttp3.Request
import okhttp3.ResponseBody.Companion.toResponseBody
import org.junit.jupiter.api.Test
import retrofit2.HttpException
import retrofit2.Response
import java.io.IOException
import java.util.concurrent.ExecutionException
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

@OptIn(ExperimentalCoroutinesApi::class)
internal class TransportsTest {
    private class TransportFault : RuntimeException()

    private fun answered(
        status: Int,
        vararg headers: String,
    ): HttpException {
        val raw =
            okhttp3.Response
                .Builder()
                .request(
                    Request.Builder().url("http://localhost/").build(),
                ).protocol(Protocol.HTTP_1_1)
                .code(status)
                .message("")
        for (header in headers) raw.addHeader(header.substringBefore(':'), header.substringAfter(": "))
        return HttpException(Response.error<String>("".toResponseBody(), raw.build()))
    }

    @Test
    fun `a fault in another thread is judged by what it was`() =
        runTest {
            val ground = RunTestFixture(this)
            val result =
                ground.comeback.retry(STEADY) { attempt ->
                    if (attempt.number == 1) throw ExecutionException(IOException("broken")) else "fine"
                }
            assertEquals("fine", result)
        }

    @Test
    fun `a transport's exceptions go again once the app has named them`() =
        runTest {
            for ((named, attempts) in listOf(emptySet<Class<out Throwable>>() to 1, setOf(TransportFault::class.java) to 4)) {
                val comeback =
                    Comeback {
                        schedulerTime(testScheduler)
                        transportExceptions = named
                    }
                var made = 0
                assertFailsWith<TransportFault> {
                    comeback.retry(STEADY) {
                        made++
                        throw TransportFault()
                    }
                }
                assertEquals(attempts, made)
            }
        }

    @Test
    fun `Retrofit's exception is judged by its response, and Retry-After is heeded`() =
        runTest {
            val ground = RunTestFixture(this)
            val result =
                ground.comeback.retry(STEADY, RetrofitClassifier) { attempt ->
                    if (attempt.number == 1) throw answered(503, "Retry-After: 7") else currentTime
                }
            assertEquals(8_000, result)
        }

    @Test
    fun `an answer that is the answer is thrown as it is`() =
        runTest {
            val ground = RunTestFixture(this)
            val answer = answered(404)
            var made = 0
            val thrown =
                assertFailsWith<HttpException> {
                    ground.comeback.retry(STEADY, RetrofitClassifier) {
                        made++
                        throw answer
                    }
                }
            assertEquals(1, made)
            assertEquals(404, thrown.code())
        }

    @Test
    fun `without the classifier it is the app's own`() =
        runTest {
            val ground = RunTestFixture(this)
            val thrown = assertFailsWith<HttpException> { ground.comeback.retry(STEADY) { throw answered(503) } }
            assertEquals(StopReason.Permanent, thrown.retryReport?.reason)
        }
}
