// What the Kotlin blocks of README.md and docs/ may name without saying where it comes from (src/snippets/Snippets.java). They are compiled,
// not run, so nothing here has a value.
package dev.comeback.snippets

import dev.comeback.Comeback
import dev.comeback.ManualConnectivity
import dev.comeback.RetryPolicy
import io.ktor.client.HttpClient
import okhttp3.Call
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody

abstract class Names {
    abstract val comeback: Comeback
    abstract val app: Comeback
    abstract val network: ManualConnectivity
    abstract val policy: RetryPolicy
    abstract val patient: RetryPolicy
    abstract val client: OkHttpClient
    abstract val calls: Call.Factory
    abstract val ktor: HttpClient
    abstract val request: Request
    abstract val url: String
    abstract val body: RequestBody
    abstract val key: String
    abstract val json: String
    abstract val repository: Repository

    abstract fun log(line: Any?)

    abstract fun askTheServer()

    abstract fun orderAgain()

    interface Repository {
        suspend fun load(): String
    }
}
