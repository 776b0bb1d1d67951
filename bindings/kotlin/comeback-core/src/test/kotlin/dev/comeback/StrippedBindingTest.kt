// Where a shrinker or a wrong build took away what the binding needs.
package dev.comeback

import java.lang.reflect.InvocationTargetException
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertIs

class StrippedBindingTest {
    private val loader = FreshLoader(without = { it.name.startsWith("jna-") })

    private fun type(name: String) = loader.loadClass("dev.comeback.$name")

    @Test
    fun `without JNA policies, connectivity and a Comeback are made all the same`() {
        val policy = type("RetryPolicy").getMethod("fromJson", String::class.java).invoke(null, "{}")
        assertEquals("off: the native library cannot be used", policy.toString())

        val connectivity = type("ManualConnectivity").getConstructor().newInstance()
        connectivity.javaClass.getMethod("available").invoke(connectivity)
        val snapshot = connectivity.javaClass.getMethod("getSnapshot").invoke(connectivity)
        assertEquals(NetworkSnapshot.UNKNOWN.toString(), snapshot.toString())

        val builder = type("Comeback").getMethod("builder").invoke(null)
        val comeback = builder.javaClass.getMethod("build").invoke(builder)
        val thrown = assertFailsWith<InvocationTargetException> { comeback.javaClass.getMethod("selfCheck").invoke(comeback) }.cause
        assertEquals("dev.comeback.ComebackUnavailableException", thrown?.javaClass?.name)
        assertIs<NoClassDefFoundError>(thrown?.cause)
    }
}
