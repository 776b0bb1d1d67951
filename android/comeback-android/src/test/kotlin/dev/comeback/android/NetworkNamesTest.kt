// Names that were not found, asked for again.
package dev.comeback.android

import android.net.Network
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.net.InetAddress
import java.net.UnknownHostException
import kotlin.concurrent.thread

@RunWith(RobolectricTestRunner::class)
internal class NetworkNamesTest {
    private val address = InetAddress.getByAddress("example.org", byteArrayOf(1, 2, 3, 4))
    private val wifi = Ground.network(1)
    private val cellular = Ground.network(2)
    private val asked = ArrayList<Pair<String, Network>>()

    private fun resolver(name: String) =
        Resolver { network, _ ->
            asked += name to network
            listOf(address)
        }

    private fun names(
        pastMemory: Resolver? = resolver("past memory"),
        withMemory: Resolver = resolver("with memory"),
        network: () -> Network?,
    ) = NetworkNames(pastMemory, withMemory, defaultNetwork = network)

    /** Off the main thread, as calls are. */
    private fun NetworkNames.found(): List<InetAddress>? {
        var found: List<InetAddress>? = null
        thread { found = lookUpAgain("example.org") }.join()
        return found
    }

    @Test
    fun `where memory can be passed by, it is, on the default network`() {
        val names = names { wifi }
        assertFalse(names.remembersFailures)
        assertEquals(listOf(address), names.found())
        assertEquals(listOf("past memory" to wifi), asked)
    }

    @Test
    fun `where it cannot, the default network is asked by name`() {
        val names = names(pastMemory = null) { wifi }
        assertTrue(names.remembersFailures)
        assertEquals(listOf(address), names.found())
        assertEquals(listOf("with memory" to wifi), asked)
    }

    @Test
    fun `after a handover the new network is asked`() {
        var network = wifi
        val names = names { network }
        names.found()
        network = cellular
        names.found()
        assertEquals(listOf(wifi, cellular), asked.map { it.second })
    }

    @Test
    fun `without a network nobody is asked`() {
        assertNull(names { null }.found())
        assertEquals(emptyList<Any>(), asked)
    }

    @Test
    fun `what a resolver throws is no answer`() {
        assertNull(names(pastMemory = { _, host -> throw UnknownHostException(host) }) { wifi }.found())
        assertNull(names(pastMemory = { _, _ -> throw NoSuchMethodError() }) { wifi }.found())
        assertNull(names(pastMemory = { _, _ -> emptyList() }) { wifi }.found())
    }

    @Test
    fun `the main thread does not wait for an answer`() {
        assertNull(names { wifi }.lookUpAgain("example.org"))
        assertEquals(emptyList<Any>(), asked)
    }

    @Test
    fun `an app that is bound to another network is left alone`() {
        assertNull(NetworkNames(resolver("past memory"), boundNetwork = { cellular }) { wifi }.found())
        assertEquals(emptyList<Any>(), asked)
    }

    @Test
    fun `memory can be passed by from API 29 on`() {
        assertEquals(android.os.Build.VERSION.SDK_INT < 29, NetworkNames { wifi }.remembersFailures)
    }
}
