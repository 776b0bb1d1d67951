// Names that were not found, asked for again on the default network.
package dev.comeback.android

import android.net.Network
import dev.comeback.Comeback
import dev.comeback.Connectivity
import dev.comeback.InternalComebackApi
import dev.comeback.ManualConnectivity
import dev.comeback.driver.NameLookUp
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import java.net.InetAddress
import java.net.UnknownHostException
import kotlin.concurrent.thread

@OptIn(InternalComebackApi::class)
@RunWith(RobolectricTestRunner::class)
internal class NetworkNamesTest {
    private val address = InetAddress.getByAddress("example.org", byteArrayOf(1, 2, 3, 4))
    private val wifi = MonitorFixture.network(1)
    private val cellular = MonitorFixture.network(2)
    private val asked = ArrayList<Pair<Network, String>>()
    private val resolver =
        Resolver { network, host ->
            asked += network to host
            listOf(address)
        }

    /** Off the main thread, as calls are. */
    private fun <T> elsewhere(action: () -> T): T {
        var result: Result<T>? = null
        thread { result = runCatching(action) }.join()
        return result!!.getOrThrow()
    }

    private fun NameLookUp.found(): List<InetAddress>? = elsewhere { lookUp(network!!, "example.org") }

    @Test
    fun `the default network is asked by name`() {
        val names = NetworkNames(resolver) { wifi }
        assertEquals(wifi, names.network)
        assertEquals(listOf(address), names.found())
        assertEquals(listOf(wifi to "example.org"), asked)
    }

    @Test
    fun `a resolver that fails once and remembers it is asked again, and finds`() {
        var network = wifi
        val remembered = HashSet<Pair<Network, String>>()
        val names =
            NetworkNames({ on, host ->
                asked += on to host
                // The server knows the name by now; what failed before is remembered.
                if (on to host in remembered) throw UnknownHostException(host)
                listOf(address)
            }) { network }
        val platform = object : Connectivity by ManualConnectivity(), NameLookUp by names {}
        Comeback { connectivity = platform }.use { comeback ->
            val memory = comeback.lookUpMemory
            memory.notFound("example.org")
            assertEquals(0, memory.nanosUntilAsked("example.org"))
            remembered += wifi to "example.org"
            assertThrows(
                UnknownHostException::class.java,
            ) { elsewhere { memory.lookUpAgain("example.org") { error("the network is known") } } }
            assertEquals(0, memory.nanosUntilAsked("example.org"))
            assertEquals(listOf(address), elsewhere { memory.lookUpAgain("example.org") { error("the network is known") } })
            network = cellular
            assertEquals(listOf(address), elsewhere { memory.lookUpAgain("example.org") { error("the network is known") } })
        }
        assertEquals(listOf(wifi to "example.org", wifi to "example.org.", cellular to "example.org"), asked)
    }

    @Test
    fun `without a network nobody is asked, and the next one remembers nothing`() {
        var network: Network? = null
        val names = NetworkNames(resolver, isOffline = { network == null }) { network }
        assertNull(names.found())
        val withoutNetwork = names.network
        network = wifi
        assertEquals(wifi, names.network)
        assertEquals(false, withoutNetwork == names.network)
        assertEquals(emptyList<Any>(), asked)
    }

    @Test
    fun `as long as nothing is known of the network there is none to name`() {
        assertNull(NetworkNames(resolver) { null }.network)
    }

    @Test
    fun `that a name is not found is said, and what else a resolver throws is no answer`() {
        assertThrows(UnknownHostException::class.java) { NetworkNames({ _, host -> throw UnknownHostException(host) }) { wifi }.found() }
        assertNull(NetworkNames({ _, _ -> throw NoSuchMethodError() }) { wifi }.found())
        assertNull(NetworkNames({ _, _ -> throw SecurityException() }) { wifi }.found())
        assertNull(NetworkNames({ _, _ -> emptyList() }) { wifi }.found())
    }

    @Test
    fun `the main thread does not wait for an answer`() {
        assertNull(NetworkNames(resolver) { wifi }.lookUp(wifi, "example.org"))
        assertEquals(emptyList<Any>(), asked)
    }

    @Test
    fun `an app that is bound to another network is left alone`() {
        assertNull(NetworkNames(resolver, boundNetwork = { cellular }) { wifi }.network)
        assertEquals(wifi, NetworkNames(resolver, boundNetwork = { wifi }) { wifi }.network)
    }
}
