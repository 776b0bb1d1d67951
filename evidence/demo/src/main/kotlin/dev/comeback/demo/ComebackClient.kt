// The only file that knows Comeback: the client under demonstration.
package dev.comeback.demo

import dev.comeback.Comeback
import dev.comeback.ComebackUnavailableException
import dev.comeback.NetworkState
import dev.comeback.RetryEvent
import dev.comeback.RetryListener
import dev.comeback.RetryPolicy
import dev.comeback.WokenBy
import dev.comeback.okhttp.ComebackOkHttp
import dev.comeback.okhttp.callFactory
import dev.comeback.okhttp.comeback
import dev.comeback.okhttp.makeIdempotencyKey
import dev.comeback.testing.FakeLink
import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

/**
 * The client with Comeback: the payment policy with the hand-written interceptor's number of sends (so that neither
 * has more tries), an idempotency key made for each order, and a phone's late knowledge of the network.
 */
internal fun comebackClient(
    client: Client,
    link: FakeLink,
    lossLateMillis: Int,
    returnLateMillis: Int,
    phone: PhoneKnowledge,
): OrderClient {
    val connectivity = link.connectivity
    val told = connectivity.subscribe { phone.told(connectivity.snapshot.state == NetworkState.OFFLINE) }
    val records = ConcurrentHashMap<String, TapRecord>()
    val comeback =
        Comeback {
            this.connectivity = connectivity
            listener =
                RetryListener { event ->
                    if (event is RetryEvent.Resumed && event.by == WokenBy.EDGE) event.label?.let { records[it] }?.woken()
                }
        }
    val policy = RetryPolicy(base = RetryPolicy.PAYMENT) { maxAttempts = HandWrittenInterceptor.MAX_SENDS }
    val configure: ComebackOkHttp.() -> Unit = { label = { request -> request.tag(TapRecord::class.java)?.run { "${tap.id}" } } }
    val builder = OrderClient.common(link)
    if (client == Client.OKHTTP) builder.comeback(comeback, policy, configure)
    val http = builder.addInterceptor(AttemptRecorder).build()
    val ktor = if (client == Client.KTOR) KtorOrders(comeback, policy, link) else null
    return OrderClient(
        COMEBACK,
        "payment policy: 4 attempts in 15 s, full jitter 1–8 s, silent re-sends off, a key per order, hears of loss/return " +
            "${inSeconds(lossLateMillis)}/${inSeconds(returnLateMillis)} s late" +
            if (client == Client.OKHTTP) "" else "; by ${client.what}",
        http,
        if (client == Client.FACTORY) comeback.callFactory(http, policy, configure) else http,
        prepared = { record ->
            records[record.tap.id.toString()] = record
            makeIdempotencyKey()
        },
        place =
            ktor?.let { orders ->
                { port, record ->
                    records[record.tap.id.toString()] = record
                    orders.place(port, record)
                }
            },
        closed = {
            told.close()
            ktor?.close()
            comeback.close()
        },
    )
}

/** Without the native library Comeback passes requests through, and there is nothing to show. */
internal fun requireComeback() {
    try {
        Comeback().use { it.selfCheck() }
    } catch (problem: ComebackUnavailableException) {
        throw NoComeback("The demo needs Comeback's native library, which cannot be used here: ${problem.message}", problem)
    }
}

internal class NoComeback(
    message: String,
    cause: Throwable,
) : Exception(message, cause)

private fun inSeconds(millis: Int) = String.format(Locale.ROOT, "%.1f", millis / 1000.0)
