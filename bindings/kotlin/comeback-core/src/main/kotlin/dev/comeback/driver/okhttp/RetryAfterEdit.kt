// Keeps OkHttp from following up a 408 or a 503 by itself, and from failing at a large Retry-After. Outside nobody sees the change.
package dev.comeback.driver.okhttp

import dev.comeback.InternalComebackApi
import okhttp3.Headers
import okhttp3.Response

/**
 * OkHttp reads Retry-After by itself: at a 0 it sends the request of a 503 again, at a 0 or none that of a 408, and a number that does not fit an Int makes
 * it throw NumberFormatException. What is no plain number it leaves alone. So the number gets a plus sign ([done], in a network interceptor), which changes
 * nothing for anybody who reads a number; [undone] takes it away again outside.
 *
 * @param read the Retry-After that OkHttp reads, which is the last; null: there is none
 * @suppress
 */
@InternalComebackApi
public class RetryAfterEdit private constructor(
    private val original: Headers,
    private val read: String?,
) {
    private val edited = withLines(original, original.values(RETRY_AFTER).dropLast(if (read == null) 0 else 1) + "+${read ?: 0}")

    public fun done(response: Response): Response = response.newBuilder().headers(edited).build()

    /** [response] as it would be without the edit, if it is the one that was edited. */
    public fun undone(response: Response): Response {
        val headers = undone(response.headers) ?: return response
        val builder = response.newBuilder().headers(headers)
        response.networkResponse?.let { ofNetwork ->
            builder.networkResponse(ofNetwork.newBuilder().headers(undone(ofNetwork.headers) ?: ofNetwork.headers).build())
        }
        return builder.build()
    }

    /** Null if [headers] are others. On their way out they may have lost some lines and got others. */
    private fun undone(headers: Headers): Headers? =
        when {
            headers[RETRY_AFTER] != edited[RETRY_AFTER] -> null
            headers == edited -> original
            headers == unzipped(edited) -> unzipped(original)
            else -> withLines(headers, original.values(RETRY_AFTER))
        }

    /** As OkHttp leaves the headers of a body that it unzips. */
    private fun unzipped(headers: Headers) =
        headers
            .newBuilder()
            .removeAll("Content-Encoding")
            .removeAll("Content-Length")
            .build()

    @InternalComebackApi
    public companion object {
        private const val RETRY_AFTER = "Retry-After"
        private const val CLIENT_TIMEOUT = 408
        private const val UNAVAILABLE = 503

        /** Null where OkHttp leaves [response] alone as it is. */
        public fun of(response: Response): RetryAfterEdit? {
            if (response.code != UNAVAILABLE && response.code != CLIENT_TIMEOUT) return null
            val read = response.header(RETRY_AFTER)
            val isLeftAlone =
                when {
                    read == null -> response.code == UNAVAILABLE
                    read.isEmpty() || !read.all(Char::isDigit) -> true
                    else -> read.toIntOrNull().let { it != null && it > 0 }
                }
            return if (isLeftAlone) null else RetryAfterEdit(response.headers, read)
        }

        private fun withLines(
            headers: Headers,
            lines: List<String>,
        ): Headers {
            val builder = headers.newBuilder().removeAll(RETRY_AFTER)
            // A server may send what OkHttp would not let an app say.
            for (line in lines) builder.addUnsafeNonAscii(RETRY_AFTER, line)
            return builder.build()
        }
    }
}
