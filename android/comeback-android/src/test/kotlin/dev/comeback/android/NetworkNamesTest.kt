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
    private val wifi = MonitorFixture.network(1)
    private val cellular = MonitorFixture.network(2)
    private val asked = ArrayList<Pair<String, Network>>()

    private fun resolver(name: String) =
        Resolver { network, _ ->
            asked += name to network
            listOf(address)
        }

    private fun names(
        pastMemory: Resolver? = resolver("past memory"),
        withMemory: Resolver = resolver("with memory"),
        isOffline: () -> Boolean = { false },
        network: () -> Network?,
    ) = NetworkNames(pastMemory, withMemory, isOffline = isOffline, defaultNetwork = network)

    /** Off the main thread, as calls are. */
    private fun NetworkNames.found(): List<InetAddress>? {
        var found: List<InetAddress>? = null
        thread { found = lookUpAgain("example.org") }.join()
        return found
    }

    @Test
    fun `where memory can be passed by, it is, on the default network`() {
        val names = names { wifi }
        assertFalse(names.remembersFailureOn(names.network))
        assertEquals(listOf(address), names.found())
        assertEquals(listOf("past memory" to wifi), asked)
    }

    @Test
    fun `where it cannot, the default network is asked by name`() {
        val names = names(pastMemory = null) { wifi }
        assertTrue(names.remembersFailureOn(names.network))
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
    fun `what failed on one network is not remembered on another`() {
        var network: Network? = wifi
        val names = names(pastMemory = null) { network }
        val askedOn = names.network
        network = cellular
        assertFalse(names.remembersFailureOn(askedOn))
        assertTrue(names.remembersFailureOn(names.network))
    }

    @Test
    fun `what failed without a network, or on one that is lost, is not remembered on the next`() {
        var network: Network? = null
        val names = names(pastMemory = null, isOffline = { network == null }) { network }
        assertFalse(names.remembersFailureOn(names.network))
        val withoutNetwork = names.network
        network = wifi
        assertFalse(names.remembersFailureOn(withoutNetwork))
        val onWifi = names.network
        network = null
        assertFalse(names.remembersFailureOn(onWifi))
    }

    @Test
    fun `as long as nothing is known of the network, failures are taken to be remembered`() {
        var network: Network? = null
        for (pastMemory in listOf(resolver("past memory"), null)) {
            val names = names(pastMemory) { network }
            network = null
            assertTrue(names.remembersFailureOn(names.network))
        }
        val names = names(pastMemory = null) { network }
        val unknown = names.network
        network = wifi
        assertTrue(names.remembersFailureOn(unknown))
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
    fun `an app that is bound to another network is left alone, with what is remembered there`() {
        val names = NetworkNames(resolver("past memory"), boundNetwork = { cellular }) { wifi }
        assertNull(names.found())
        assertTrue(names.remembersFailureOn(names.network))
        assertEquals(emptyList<Any>(), asked)
    }

    @Test
    fun `memory can be passed by from API 29 on`() {
        assertEquals(android.os.Build.VERSION.SDK_INT < 29, NetworkNames { wifi }.remembersFailureOn(wifi))
    }
}
