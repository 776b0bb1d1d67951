// What the app has one of: Comeback, and one HTTP client with it.
package dev.comeback.sample

import android.app.Application
import dev.comeback.Comeback
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.android.AndroidConnectivity
import dev.comeback.okhttp.comeback
import okhttp3.OkHttpClient
import okhttp3.Request

class SampleApp : Application() {
    val attempts = AttemptLog()
    lateinit var connectivity: AndroidConnectivity
        private set
    lateinit var http: OkHttpClient
        private set

    override fun onCreate() {
        super.onCreate()
        connectivity = AndroidConnectivity(this)
        val comeback =
            Comeback {
                connectivity = this@SampleApp.connectivity
                listener = RetryListener { attempts.add(it) }
            }
        http =
            OkHttpClient
                .Builder()
                .comeback(comeback, RetryPolicy.READ) { label = { request: Request -> request.method } }
                .build()
    }
}
