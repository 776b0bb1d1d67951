// What is noted of each tap, of either client in the same way.
package dev.comeback.demo

import okhttp3.Interceptor
import okhttp3.Response
import java.io.IOException
import java.util.concurrent.ConcurrentLinkedQueue

/** What became of one tap at one client. All times are milliseconds since the ride began. */
internal data class TapStory(
    val tap: Tap,
    val attempts: List<Attempt>,
    /** When a wait was ended by the network's return. */
    val wakes: List<Long>,
    val endedAt: Long,
    val succeeded: Boolean,
)

/** One pass below the retry layer. [answered] false: no 2xx came back. */
internal data class Attempt(
    val from: Long,
    val until: Long,
    val answered: Boolean,
)

/** Collects a [TapStory] while it happens; any thread may read how far it is. */
internal class TapRecord(
    val tap: Tap,
    private val now: () -> Long,
) {
    private val attempts = ConcurrentLinkedQueue<Attempt>()
    private val wakes = ConcurrentLinkedQueue<Long>()

    @Volatile
    private var end: Pair<Long, Boolean>? = null

    /** Null while the tap is still under way. */
    val succeeded: Boolean? get() = end?.second

    fun attempted(
        from: Long,
        answered: Boolean,
    ) {
        attempts += Attempt(from, now(), answered)
    }

    fun woken() {
        wakes += now()
    }

    fun ended(succeeded: Boolean) {
        end = now() to succeeded
    }

    fun millis(): Long = now()

    fun story(): TapStory {
        val (endedAt, succeeded) = checkNotNull(end) { "tap ${tap.id} has not ended" }
        return TapStory(tap, attempts.toList(), wakes.toList(), endedAt, succeeded)
    }
}

/** Added after the retry layer of either client, so it runs once for each attempt and sees both clients with the same eyes. */
internal object AttemptRecorder : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val record = chain.request().tag(TapRecord::class.java) ?: return chain.proceed(chain.request())
        val from = record.millis()
        return try {
            chain.proceed(chain.request()).also { record.attempted(from, it.isSuccessful) }
        } catch (problem: IOException) {
            record.attempted(from, answered = false)
            throw problem
        }
    }
}
