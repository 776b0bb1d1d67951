// @Retry on Retrofit's methods, through the interceptor and the factory.
package dev.comeback.okhttp

import dev.comeback.RetryPolicy
import dev.comeback.retryReport
import kotlinx.coroutines.runBlocking
import okhttp3.Call.Factory
import okhttp3.ResponseBody
import org.junit.jupiter.api.Timeout
import org.junit.jupiter.params.ParameterizedClass
import org.junit.jupiter.params.provider.EnumSource
import retrofit2.Call
import retrofit2.Response
import retrofit2.Retrofit
import retrofit2.http.GET
import retrofit2.http.POST
import java.io.IOException
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

@ParameterizedClass
@EnumSource(Driver::class, names = ["INTERCEPTOR", "FACTORY"])
@Timeout(30)
internal class RetrofitTest(
    private val driver: Driver,
) {
    private interface Shop {
        @GET("/")
        suspend fun plain(): ResponseBody

        @Retry("twice")
        @GET("/")
        suspend fun twice(): ResponseBody

        @Retry("twice")
        @GET("/")
        suspend fun twiceWithHead(): Response<ResponseBody>

        @Retry("twice")
        @GET("/")
        fun twiceLater(): Call<ResponseBody>

        @Retry("batch", maxAttempts = 3)
        @GET("/")
        fun values(): Call<ResponseBody>

        @Retry("off")
        @GET("/")
        fun off(): Call<ResponseBody>

        @Retry("paymnet")
        @POST("/")
        suspend fun misspelt(): ResponseBody

        @Retry(maxAttempts = 0)
        @GET("/")
        fun invalid(): Call<ResponseBody>
    }

    private fun onShop(test: (LoopbackFixture, Shop) -> Unit) =
        LoopbackFixture(driver = driver).use { ground ->
            repeat(10) { ground.server.enqueue(status(503)) }
            val calls: Factory = ground.calls(configure = { policies = mapOf("twice" to RetryPolicy { maxAttempts = 2 }) })
            val retrofit =
                Retrofit
                    .Builder()
                    .baseUrl(ground.url())
                    .callFactory(calls)
                    .build()
            test(ground, retrofit.create(Shop::class.java))
        }

    @Test
    fun `a method that says nothing has the client's policy`() =
        onShop { ground, shop ->
            assertFailsWith<retrofit2.HttpException> { runBlocking { shop.plain() } }
            assertEquals(4, ground.server.requestCount)
        }

    @Test
    fun `a suspend function has the policy it names`() =
        onShop { ground, shop ->
            assertFailsWith<retrofit2.HttpException> { runBlocking { shop.twice() } }
            assertEquals(2, ground.server.requestCount)
        }

    @Test
    fun `a Response has it, and the report`() =
        onShop { ground, shop ->
            val response = runBlocking { shop.twiceWithHead() }
            assertEquals(2, response.raw().retryReport!!.counted)
            assertEquals(2, ground.server.requestCount)
        }

    @Test
    fun `a Call has it`() =
        onShop { ground, shop ->
            assertEquals(503, shop.twiceLater().execute().code())
            assertEquals(2, ground.server.requestCount)
        }

    @Test
    fun `values go over the named policy`() =
        onShop { ground, shop ->
            assertEquals(503, shop.values().execute().code())
            assertEquals(3, ground.server.requestCount)
        }

    @Test
    fun `off lets the method's calls pass`() =
        onShop { ground, shop ->
            assertEquals(503, shop.off().execute().code())
            assertEquals(1, ground.server.requestCount)
            assertEquals(emptyList(), ground.events)
        }

    @Test
    fun `an unknown name fails every call before anything is sent, and says method and known names`() =
        onShop { ground, shop ->
            repeat(2) {
                val failure = assertFailsWith<IOException> { runBlocking { shop.misspelt() } }
                assertEquals(
                    "@Retry on ${Shop::class.java.name}.misspelt: there is no policy \"paymnet\"; " +
                        "known are batch, default, off, payment, read, twice",
                    failure.message,
                )
            }
            assertEquals(0, ground.server.requestCount)
            assertEquals(null, IOException().retryReport)
        }

    @Test
    fun `an invalid value does too, and says what is valid`() =
        onShop { ground, shop ->
            val failure = assertFailsWith<IOException> { shop.invalid().execute() }
            assertEquals("@Retry on ${Shop::class.java.name}.invalid: max_attempts = 0: must be from 1 to 100", failure.message)
            assertEquals(0, ground.server.requestCount)
        }
}
