// The one screen: pay, read, what became of it, and the network as Comeback sees it.
package dev.comeback.sample

import android.app.Activity
import android.os.Bundle
import android.view.View
import android.widget.Button
import android.widget.EditText
import android.widget.LinearLayout
import android.widget.ScrollView
import android.widget.TextView
import dev.comeback.RetryPolicy
import dev.comeback.Subscription
import dev.comeback.okhttp.retryPolicy
import okhttp3.Call
import okhttp3.Callback
import okhttp3.MediaType.Companion.toMediaType
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import java.io.IOException
import java.util.UUID
import java.util.concurrent.atomic.AtomicInteger

class MainActivity : Activity() {
    private val app get() = application as SampleApp
    private lateinit var server: EditText
    private lateinit var network: TextView
    private lateinit var log: TextView
    private lateinit var tryAgain: Button
    private var watching: Subscription? = null

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        network = TextView(this)
        log = TextView(this)
        // The computer beside an emulator.
        server = EditText(this).apply { setText("http://10.0.2.2:8080") }
        tryAgain = button("Try again") {}.apply { visibility = View.GONE }
        setContentView(
            LinearLayout(this).apply {
                orientation = LinearLayout.VERTICAL
                addView(network)
                addView(server)
                addView(button("Pay") { send(payment()) })
                addView(button("Read") { send(reading()) })
                addView(tryAgain)
                addView(ScrollView(context).apply { addView(log) })
            },
        )
    }

    override fun onStart() {
        super.onStart()
        app.attempts.onChange = { runOnUiThread(::show) }
        watching = app.connectivity.subscribe { runOnUiThread(::show) }
        show()
    }

    override fun onStop() {
        app.attempts.onChange = {}
        watching?.close()
        super.onStop()
    }

    private fun show() {
        network.text = "Network: ${app.connectivity.snapshot.state.name.lowercase()}"
        log.text = app.attempts.text()
    }

    /** One key for the tap, whatever becomes of it: "try again" after a stop uses the same request, so that nothing is paid twice. */
    private fun payment(): Request? =
        request("/orders")
            ?.post("""{"tap":${TAPS.incrementAndGet()}}""".toRequestBody("application/json".toMediaType()))
            ?.header("Idempotency-Key", UUID.randomUUID().toString())
            ?.retryPolicy(RetryPolicy.PAYMENT)
            ?.build()

    private fun reading(): Request? = request("/orders")?.build()

    private fun request(path: String): Request.Builder? =
        try {
            Request.Builder().url(server.text.toString() + path)
        } catch (notAUrl: IllegalArgumentException) {
            app.attempts.add("This is no address: ${notAUrl.message}")
            null
        }

    private fun send(request: Request?) {
        if (request == null) return
        tryAgain.visibility = View.GONE
        app.http.newCall(request).enqueue(
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) {
                    response.use { app.attempts.add("${request.method}: ${it.code}") }
                }

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) {
                    app.attempts.add("${request.method}: ${e.message}")
                    runOnUiThread {
                        tryAgain.setOnClickListener { send(request) }
                        tryAgain.visibility = View.VISIBLE
                    }
                }
            },
        )
    }

    private fun button(
        text: String,
        onClick: () -> Unit,
    ) = Button(this).apply {
        this.text = text
        setOnClickListener { onClick() }
    }

    private companion object {
        val TAPS = AtomicInteger()
    }
}
