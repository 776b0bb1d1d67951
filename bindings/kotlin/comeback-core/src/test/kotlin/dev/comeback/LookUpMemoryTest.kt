// Names that were not found are asked for in the first way whose failure the platform does not remember.
package dev.comeback

import dev.comeback.driver.LookUpMemory
import dev.comeback.driver.NameLookUp
import org.junit.jupiter.api.Test
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import java.net.InetAddress
import java.net.UnknownHostException
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

internal class LookUpMemoryTest {
    private val time = TestTime()
    private val asked = ArrayList<String>()
    private val address = InetAddress.getByAddress(byteArrayOf(1, 2, 3, 4))

    private var found = emptySet<String>()

    private fun system(name: String): List<InetAddress> {
        asked += name
        if (name !in found) throw UnknownHostException(name)
        return listOf(InetAddress.getByAddress(name, address.address))
    }

    private fun memory(names: NameLookUp? = null) = LookUpMemory(time, names) { LENGTH }

    private fun LookUpMemory.fail(host: String) = assertFailsWith<UnknownHostException> { lookUpAgain(host, ::system) }

    @Test
    fun `after the name as it is written comes the one with its final dot, then whichever is forgotten first`() {
        val memory = memory()
        memory.notFound(HOST)
        assertEquals(0, memory.nanosUntilAsked(HOST))
        time.now += 3
        memory.fail(HOST)
        assertEquals(LENGTH - 3, memory.nanosUntilAsked(HOST))
        time.now += LENGTH - 3
        assertEquals(0, memory.nanosUntilAsked(HOST))
        memory.fail(HOST)
        time.now += 3
        memory.fail(HOST)
        assertEquals(listOf("$HOST.", HOST, "$HOST."), asked)
    }

    @Test
    fun `a look-up that nobody was asked for makes a memory no longer`() {
        val memory = memory()
        memory.notFound("host")
        time.now += 4
        memory.notFound("host")
        assertEquals(LENGTH - 4, memory.nanosUntilAsked("host"))
    }

    @Test
    fun `what is found with a dot has the name without`() {
        found = setOf("$HOST.")
        val memory = memory()
        memory.notFound(HOST)
        assertEquals(HOST, memory.lookUpAgain(HOST, ::system).single().hostName)
    }

    @ParameterizedTest
    @ValueSource(strings = ["host", "example.org.", "printer.local", "printer.LOCAL", "1.2.3.4", "::1", "fe80::1.2.3.4"])
    fun `there is no second name for`(host: String) {
        val memory = memory()
        memory.notFound(host)
        assertEquals(LENGTH, memory.nanosUntilAsked(host))
        memory.fail(host)
        assertEquals(listOf(host), asked)
    }

    private inner class Networks : NameLookUp {
        override var network: Any? = "wifi"
        var isThere = true

        override fun lookUp(
            network: Any,
            host: String,
        ): List<InetAddress>? = if (isThere) system("$network $host") else null
    }

    @Test
    fun `each network has a memory of its own`() {
        val networks = Networks()
        val memory = memory(networks)
        memory.notFound(HOST)
        repeat(2) {
            assertEquals(0, memory.nanosUntilAsked(HOST))
            memory.fail(HOST)
        }
        assertEquals(LENGTH, memory.nanosUntilAsked(HOST))
        networks.network = "cellular"
        assertEquals(0, memory.nanosUntilAsked(HOST))
        memory.fail(HOST)
        assertEquals(listOf("wifi $HOST", "wifi $HOST.", "cellular $HOST"), asked)
    }

    @Test
    fun `where nobody can be asked on a network, the system is, and nothing is remembered of that network`() {
        val networks = Networks().apply { isThere = false }
        val memory = memory(networks)
        repeat(2) { memory.fail(HOST) }
        assertEquals(listOf(HOST, HOST), asked)
        assertEquals(0, memory.nanosUntilAsked(HOST))
    }

    @Test
    fun `a memory for ever does not overflow`() {
        val memory = LookUpMemory(time, null) { Long.MAX_VALUE }
        memory.notFound("host")
        assertEquals(Long.MAX_VALUE - time.now, memory.nanosUntilAsked("host"))
    }

    @Test
    fun `many names are forgotten`() {
        val memory = memory()
        for (number in 0..256) memory.notFound("host$number")
        assertEquals(0, memory.nanosUntilAsked("host0"))
        assertEquals(LENGTH, memory.nanosUntilAsked("host256"))
    }

    private companion object {
        const val HOST = "example.org"
        const val LENGTH = 10L
    }
}
