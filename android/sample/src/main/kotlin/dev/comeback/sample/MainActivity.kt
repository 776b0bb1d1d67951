// The one screen: pay, read, what became of it, and the network as Comeback sees it. Its server: `cargo xtask demo serve`.
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
    private lateinit var queue: TextView
    private lateinit var tryAgain: Button
    private var watching: Subscription? = null

    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        network = TextView(this)
        queue = TextView(this)
        // The computer beside an emulator. Of a phone on a cable, after `adb reverse tcp:8080 tcp:8080`: http://127.0.0.1:8080
        server = EditText(this).apply { setText("http://10.0.2.2:8080") }
        tryAgain = button("Try again") { app.stopped?.let(::send) }
        setContentView(
            LinearLayout(this).apply {
                orientation = LinearLayout.VERTICAL
                // From Android 15 on an app draws below the system's bars.
                fitsSystemWindows = true
                addView(network)
                addView(server)
                addView(button("Pay") { payment()?.let(::send) })
                addView(button("Read") { reading()?.let(::send) })
                addView(tryAgain)
                addView(ScrollView(context).apply { addView(queue) })
            },
        )
    }

    override fun onStart() {
        super.onStart()
        app.calls.onChange = { runOnUiThread(::show) }
        watching = app.connectivity.subscribe { runOnUiThread(::show) }
        show()
    }

    override fun onStop() {
        app.calls.onChange = {}
        watching?.close()
        super.onStop()
    }

    private fun show() {
        network.text = "Network: ${app.connectivity.snapshot.state.name.lowercase()}"
        queue.text = app.calls.text()
        tryAgain.visibility = if (app.stopped == null) View.GONE else View.VISIBLE
    }

    /** One key for the tap, whatever becomes of it: "try again" after a stop uses the same request, so that nothing is paid twice. */
    private fun payment(): Request? =
        request()
            ?.post("""{"tap":${TAPS.incrementAndGet()}}""".toRequestBody("application/json".toMediaType()))
            ?.header("Idempotency-Key", UUID.randomUUID().toString())
            ?.retryPolicy(RetryPolicy.PAYMENT)
            ?.build()

    private fun reading(): Request? = request()?.build()

    private fun request(): Request.Builder? =
        try {
            Request.Builder().url(server.text.toString() + "/orders")
        } catch (notAUrl: IllegalArgumentException) {
            app.calls.add("This is no address: ${notAUrl.message}")
            null
        }

    private fun send(request: Request) {
        app.stopped = null
        show()
        app.http.newCall(request).enqueue(
            object : Callback {
                override fun onResponse(
                    call: Call,
                    response: Response,
                ) {
                    val answer =
                        try {
                            response.use { "${it.code} ${it.body.string()}" }
                        } catch (broken: IOException) {
                            return stopped(broken.toString())
                        }
                    if (response.isSuccessful) app.calls.add("${request.method}: $answer") else stopped(answer)
                }

                override fun onFailure(
                    call: Call,
                    e: IOException,
                ) {
                    stopped(e.toString())
                }

                private fun stopped(why: String) {
                    app.stopped = request
                    app.calls.add("${request.method}: $why")
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
