// The sample against the demo's server (`cargo xtask demo serve`), as a person would tap it.
package dev.comeback.sample

import android.content.Context
import android.net.ConnectivityManager
import android.os.Handler
import android.os.HandlerThread
import android.os.Looper
import android.view.View
import android.view.ViewGroup
import android.widget.Button
import android.widget.EditText
import android.widget.TextView
import com.sun.net.httpserver.HttpServer
import dev.comeback.demo.Shop
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowNetwork
import org.robolectric.shadows.ShadowSystemClock
import java.io.ByteArrayOutputStream
import java.io.PrintStream
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.ServerSocket
import java.time.Duration
import java.util.concurrent.TimeUnit.SECONDS

@RunWith(RobolectricTestRunner::class)
@Config(application = SampleApp::class)
internal class SampleTest {
    private val app get() = RuntimeEnvironment.getApplication() as SampleApp
    private val written = ByteArrayOutputStream()
    private val activity = Robolectric.buildActivity(MainActivity::class.java).setup()

    @After
    fun end() {
        activity.pause().stop().destroy()
        app.http.dispatcher.executorService
            .shutdownNow()
        app.http.connectionPool.evictAll()
        app.connectivity.close()
        monitors().forEach { it.join(5_000) }
    }

    private fun monitors() =
        Thread
            .getAllStackTraces()
            .keys
            .filterIsInstance<HandlerThread>()
            .filter { it.name == "comeback-network" }

    private fun shop(port: Int = 0) = Shop(port, PrintStream(written, true))

    private inline fun <reified T : View> views(): List<T> = all(activity.get().window.decorView).filterIsInstance<T>()

    private fun all(view: View): List<View> =
        listOf(view) + if (view is ViewGroup) (0 until view.childCount).flatMap { all(view.getChildAt(it)) } else emptyList()

    private fun button(text: String) = views<Button>().single { it.text == text }

    private fun server(port: Int) {
        views<EditText>().single().setText("http://127.0.0.1:$port")
    }

    private fun shown() = views<TextView>().joinToString("\n") { it.text }

    private fun awaitShown(text: String) = await("\"$text\" is shown") { text in shown() }

    /** Robolectric's clock goes on only if it is told to, and the main thread works only if it is let. */
    private fun await(
        what: String,
        holds: () -> Boolean,
    ) {
        val until = System.nanoTime() + SECONDS.toNanos(60)
        while (!holds() && System.nanoTime() < until) {
            shadowOf(Looper.getMainLooper()).idle()
            ShadowSystemClock.advanceBy(Duration.ofMillis(5))
            Thread.sleep(2)
        }
        assertTrue("not so: $what. Shown:\n${shown()}", holds())
    }

    @Test
    fun `pay orders, and read tells how many orders there are`() {
        shop().use { shop ->
            server(shop.port)
            button("Pay").performClick()
            awaitShown("POST: 201")
            button("Read").performClick()
            awaitShown("""GET: 200 {"orders":1}""")
            assertEquals(View.GONE, button("Try again").visibility)
            assertEquals(1, shop.orders)
        }
    }

    @Test
    fun `when a payment stops its attempts and waits are shown, and try again sends the same one`() {
        val port = ServerSocket(0).use { it.localPort }
        server(port)
        button("Pay").performClick()
        await("try again") { button("Try again").visibility == View.VISIBLE }
        val steps =
            "POST \\d+: CONNECT_REFUSED, waits \\d+ ms \\(backoff\\) … goes again after \\d+ ms \\(timer\\), .* " +
                "stopped: attempts\\."
        assertTrue(shown(), Regex(steps).containsMatchIn(shown()))
        val payment = app.stopped!!
        assertNotNull(payment.header("Idempotency-Key"))
        shop(port).use { shop ->
            button("Try again").performClick()
            assertEquals(View.GONE, button("Try again").visibility)
            awaitShown("POST: 201")
            assertEquals(1, shop.orders)
            // Tapped once more it would have been the same payment.
            app.stopped = payment
            button("Try again").performClick()
            await("answered from store") { "1 answered from store" in shop.totals() }
            assertEquals(1, shop.orders)
        }
    }

    @Test
    fun `a payment that a busy server never took can be tried again too`() {
        val busy = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0)
        busy.createContext("/") { exchange ->
            exchange.sendResponseHeaders(503, -1)
            exchange.close()
        }
        busy.start()
        try {
            server(busy.address.port)
            button("Pay").performClick()
            await("try again") { button("Try again").visibility == View.VISIBLE }
            assertTrue(shown(), "503" in shown() && "stopped: attempts." in shown())
        } finally {
            busy.stop(0)
        }
    }

    @Test
    fun `the network is shown as Comeback sees it`() {
        awaitShown("Network: unknown")
        val monitor = monitors().single()
        shadowOf(monitor.looper).idle()
        val service = app.getSystemService(Context.CONNECTIVITY_SERVICE) as ConnectivityManager
        val callback = shadowOf(service).networkCallbacks.single()
        Handler(monitor.looper).post { callback.onLost(ShadowNetwork.newInstance(1)) }
        Handler(monitor.looper).post { callback.onAvailable(ShadowNetwork.newInstance(1)) }
        shadowOf(monitor.looper).idleFor(Duration.ofMillis(200))
        awaitShown("Network: online")
        Handler(monitor.looper).post { callback.onLost(ShadowNetwork.newInstance(1)) }
        shadowOf(monitor.looper).idle()
        awaitShown("Network: offline")
    }
}
