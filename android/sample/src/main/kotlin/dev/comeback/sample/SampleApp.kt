// What the app has one of: Comeback, and one HTTP client with it.
package dev.comeback.sample

import android.app.Application
import android.os.StrictMode
import android.util.Log
import dev.comeback.Comeback
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.android.AndroidConnectivity
import dev.comeback.okhttp.comeback
import okhttp3.OkHttpClient
import okhttp3.Request
import kotlin.concurrent.thread

class SampleApp : Application() {
    val calls = CallQueue()
    lateinit var connectivity: AndroidConnectivity
        private set
    lateinit var http: OkHttpClient
        private set

    /** The request of the call that stopped last, key and all. The activity may come and go. */
    @Volatile
    var stopped: Request? = null

    override fun onCreate() {
        super.onCreate()
        // Whatever blocks the main thread is told in the log.
        StrictMode.setThreadPolicy(
            StrictMode.ThreadPolicy
                .Builder()
                .detectAll()
                .penaltyLog()
                .build(),
        )
        // The server it is shown with is on this machine, behind `adb reverse`; an app of yours leaves this out.
        connectivity = AndroidConnectivity(this, concernsLoopback = true)
        val comeback =
            Comeback {
                connectivity = this@SampleApp.connectivity
                listener = RetryListener { calls.add(it) }
            }
        http =
            OkHttpClient
                .Builder()
                .comeback(comeback, RetryPolicy.READ) { label = { request: Request -> request.method } }
                .build()
        // An app would do this in a test of its release build; the sample is that test.
        thread(name = "self check") {
            try {
                comeback.selfCheck()
                Log.i(TAG, "the native library works")
            } catch (unavailable: Throwable) {
                Log.e(TAG, "the native library does not work", unavailable)
            }
        }
    }

    private companion object {
        const val TAG = "comeback-sample"
    }
}
