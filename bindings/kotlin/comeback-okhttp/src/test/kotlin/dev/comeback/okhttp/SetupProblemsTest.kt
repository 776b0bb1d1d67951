// What an app is told that has put its client together wrongly.
package dev.comeback.okhttp

import dev.comeback.Comeback
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.driver.AdapterCheck
import dev.comeback.okhttp.internal.OkHttpVersion
import okhttp3.OkHttpClient
import org.junit.jupiter.api.Test
import java.util.ServiceLoader
import kotlin.test.assertEquals
import kotlin.test.assertIs
import kotlin.test.assertNull

class SetupProblemsTest {
    @Test
    fun `Comeback twice on one client is told once, with what to remove`() {
        val heard = mutableListOf<RetryEvent>()
        Comeback { listener = RetryListener { heard += it } }.use { comeback ->
            val client = OkHttpClient.Builder().comeback(comeback).build()
            assertEquals(emptyList(), heard)
            repeat(2) { client.newBuilder().comeback(comeback) }
        }
        assertEquals(
            "Comeback: comeback(…) was called twice on one OkHttpClient.Builder, and only the first one acts: remove one. " +
                "For other policies there are policyFor and Request.Builder.retryPolicy",
            heard.single().toString(),
        )
    }

    @Test
    fun `the self-check asks for OkHttp's version, and passes with this one`() {
        assertIs<OkHttpVersion>(ServiceLoader.load(AdapterCheck::class.java).single())
        Comeback().use { it.selfCheck() }
    }

    @Test
    fun `an OkHttp that is too old is named`() {
        for (version in listOf("3.14.9", "4.12.0", "5.3.2", "5.0.0-alpha.14")) {
            assertEquals("Comeback needs OkHttp 5.4 or newer, and this is $version", OkHttpVersion(version).problem()?.cause?.message)
        }
        for (version in listOf("5.4.0", "5.10.1", "6.0.0-alpha.1", "of our own", null)) {
            assertNull(OkHttpVersion(version).problem(), version)
        }
    }
}
