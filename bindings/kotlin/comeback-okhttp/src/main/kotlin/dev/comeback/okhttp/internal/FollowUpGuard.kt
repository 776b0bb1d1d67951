// Keeps OkHttp from following up a 408 or a 503 by itself, from failing at a large Retry-After, and from re-sending. Outside nobody sees the change.
package dev.comeback.okhttp.internal

import dev.comeback.driver.okhttp.OwnInterceptor
import dev.comeback.driver.okhttp.RetryAfterEdit
import okhttp3.Interceptor
import okhttp3.Response
import java.io.IOException

/** A network interceptor for the calls Comeback looks after, further out than the app's. What it does by [RetryAfterEdit] is undone outside. */
internal class FollowUpGuard private constructor(
    private val isAlone: Boolean,
) : OwnInterceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val layer = CallLayer.find(chain.call())
        if (layer == null || !layer.isActive) return proceed(chain)
        layer.goesOut(chain.request())
        val response =
            try {
                proceed(chain)
            } catch (failure: IOException) {
                throw layer.resends.seen(failure)
            }
        val edit = RetryAfterEdit.of(response)
        layer.edit = edit
        return edit?.done(response) ?: response
    }

    private fun proceed(chain: Interceptor.Chain): Response {
        if (!isAlone) {
            AttemptExit.approach(chain)
            return chain.proceed(chain.request())
        }
        AttemptExit.pass(chain)
        return ReplayCheck.proceed(chain, this)
    }

    companion object {
        /** The app has network interceptors further in: [ReplayCheck] and [AttemptExit] come after those. */
        val OUTERMOST = FollowUpGuard(isAlone = false)

        /** Does what [ReplayCheck] and [AttemptExit] do, too: each interceptor costs a call some 100 bytes. */
        val ALONE = FollowUpGuard(isAlone = true)
    }
}
