package dev.comeback.demo

import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import org.junit.jupiter.api.Test
import java.io.ByteArrayOutputStream
import java.io.PrintStream
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/** The server alone, as another client meets it. */
class ShopTest {
    private val written = ByteArrayOutputStream()

    @Test
    fun `each request is a line, and the totals tell what really happened`() {
        val http = OkHttpClient()
        Shop(0, PrintStream(written, true)).use { shop ->
            fun send(request: Request.Builder) = http.newCall(request.url("http://127.0.0.1:${shop.port}/orders").build()).execute().close()

            send(Request.Builder())
            repeat(2) { send(Request.Builder().post("""{"tap":7}""".toRequestBody()).header("Idempotency-Key", "a")) }
            send(Request.Builder().post("""{"tap":8}""".toRequestBody()))
            assertEquals(
                listOf(
                    "GET: read",
                    "POST tap 7: a new order",
                    "POST tap 7: its key was seen before, the stored answer again",
                    "POST tap 8 without a key: a new order",
                ),
                written
                    .toString()
                    .trim()
                    .lines()
                    .map { it.trim() },
            )
            assertEquals("3 POSTs received, 2 orders made, 1 answered from store.", shop.totals())
            assertEquals(2, shop.orders)
        }
        http.dispatcher.executorService.shutdown()
        http.connectionPool.evictAll()
    }

    @Test
    fun `a port that is taken is told in one sentence`() {
        Shop(0, PrintStream(written)).use { shop ->
            val err = ByteArrayOutputStream()
            val terminal = Terminal(width = 80, colours = false, progressRewrites = false)
            val code = Demo(PrintStream(written), PrintStream(err), terminal).run(listOf("serve", "--port", "${shop.port}"))
            assertEquals(1, code)
            assertTrue(err.toString().contains("Address already in use"), err.toString())
        }
    }
}
