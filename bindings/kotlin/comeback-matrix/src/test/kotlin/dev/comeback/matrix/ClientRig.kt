// A call through Comeback's own client.
package dev.comeback.matrix

import dev.comeback.RetryPolicy
import dev.comeback.client.ClientRequest
import dev.comeback.client.ComebackClient

internal class ClientRig(
    private val cell: Cell,
    private val server: FaultServer,
    private val callLabel: String,
) : Rig {
    private val client = if (cell.fault == Fault.LATE && !cell.preset.limitsAttempts) HASTY else PATIENT

    override suspend fun call(key: String?): Answer {
        val request =
            ClientRequest(cell.send.method, server.mainUrl) {
                label = callLabel
                policy = cell.policy
                if (cell.send != Send.GET) body("order")
                if (key != null) header("Idempotency-Key", key)
            }
        val response = client.execute(request)
        return Answer(response.status, response.headers.filter { it.first == "retry-after" }.map { it.second }, response.report)
    }

    override suspend fun warm() {
        client.get(server.warmUrl) { policy = RetryPolicy.OFF }
    }

    override fun close() = Unit

    private companion object {
        val PATIENT by lazy { ComebackClient(Comebacks.first) }
        val HASTY by lazy { ComebackClient(Comebacks.first) { readTimeoutMillis = LATE_LIMIT_MILLIS } }
    }
}
