// `cargo xtask demo serve`: the demo's server alone, for other clients than its own; the Android sample is one.
package dev.comeback.demo

import java.io.PrintStream

/**
 * Serves until it is closed, and writes a line to [out] for each request that it understood. On loopback only: an emulator reaches that at
 * `10.0.2.2`, a phone on a cable after `adb reverse tcp:8080 tcp:8080`.
 *
 * @param port 0: any that is free
 */
class Shop(
    port: Int,
    private val out: PrintStream,
) : AutoCloseable {
    private val server = OrderServer(port, onRequest = { out.println("  $it") }) { 0 }

    val port: Int get() = server.port

    /** Orders made so far. */
    val orders: Int get() = server.counts().orders

    fun totals(): String {
        val counts = server.counts()
        return "${counts.sends} POSTs received, ${counts.orders} orders made, ${counts.replays} answered from store."
    }

    override fun close(): Unit = server.close()
}
