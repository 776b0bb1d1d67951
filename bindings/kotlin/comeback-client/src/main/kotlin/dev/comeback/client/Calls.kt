// The calls in flight, and the one thread that hears what happens to them. The only file that calls into the client's native library.
package dev.comeback.client

import dev.comeback.Comeback
import dev.comeback.ComebackUnavailableException
import dev.comeback.NetworkSnapshot
import dev.comeback.RetryPolicy
import dev.comeback.Subscription
import dev.comeback.client.ffi.Authority
import dev.comeback.client.ffi.Client
import dev.comeback.client.ffi.ClientProblem
import dev.comeback.client.ffi.Link
import dev.comeback.client.ffi.Request
import dev.comeback.client.ffi.Setting
import dev.comeback.client.ffi.uniffiEnsureInitialized
import dev.comeback.driver.NativeLibrary
import dev.comeback.driver.OuterAttempt
import dev.comeback.driver.RelayedCall
import dev.comeback.driver.RequestHead
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.withContext
import java.io.IOException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong
import kotlin.concurrent.thread
import kotlin.coroutines.resumeWithException
import kotlin.time.Duration

/**
 * Rust never calls into Kotlin: its threads would have to be attached to the virtual machine, each callback perhaps as a Java thread of its own. One
 * Java thread waits inside [Client.receive] instead, for whatever happens to any call, and hands it on.
 */
internal class Calls(
    private val comeback: Comeback,
    builder: ComebackClient.Builder,
) {
    private val setting =
        Setting(
            authorities = builder.authorities.map(::Authority),
            userAgent = builder.userAgent,
            connectTimeout = builder.connectTimeout?.nanos(),
            readTimeout = builder.readTimeout?.nanos(),
            concernsLoopback = comeback.concernsLoopback(),
        )
    private val readUpTo = builder.readUpTo
    private val numbers = AtomicLong()
    private val inFlight = ConcurrentHashMap<Long, CallInFlight>()
    private val client = CompletableDeferred<Client>()
    private val publishing = Any()
    private var published: NetworkSnapshot? = null

    @Volatile
    private var isClosed = false

    init {
        thread(isDaemon = true, name = "comeback-client", block = ::run)
    }

    suspend fun execute(
        request: ClientRequest,
        policy: RetryPolicy,
    ): ClientResponse {
        val outer =
            OuterAttempt.onThisThread
                ?: return execute(request, policy, RelayedCall(comeback, request.label, keyIsMade = makesKey(request, policy)))
        // The outermost layer acts: here the request goes once, and that layer hears of it.
        val once = if (policy.driverFacts == null) policy else RetryPolicy(policy) { maxAttempts = 1 }
        val keyHeader = (policy.driverFacts ?: checkNotNull(RetryPolicy.DEFAULT.driverFacts)).keyHeader
        val head =
            RequestHead.read(request.method, keyHeader) { name ->
                request.headers.filter { it.first.equals(name, ignoreCase = true) }.map { it.second }
            }
        // A key that the library makes is not among these headers, and would not count.
        val innerRequest = outer.request(policy, head, keyIsMade = false)
        innerRequest.goesOut()
        val relayed = RelayedCall(comeback, request.label, isInner = true)
        try {
            return execute(request, once, relayed).also { response ->
                innerRequest.ended(
                    sentNothing = false,
                    response.headers.filter { it.first.equals("Retry-After", ignoreCase = true) }.map { it.second },
                )
            }
        } catch (thrown: IOException) {
            innerRequest.ended(sentNothing = !relayed.mayHaveArrived)
            throw thrown
        }
    }

    /** Whether the library does. */
    private fun makesKey(
        request: ClientRequest,
        policy: RetryPolicy,
    ): Boolean {
        val facts = policy.driverFacts ?: return request.makeKey
        return (request.makeKey || facts.makesKey(request.method)) &&
            request.headers.none { it.first.equals(facts.keyHeader, ignoreCase = true) }
    }

    private suspend fun execute(
        request: ClientRequest,
        policy: RetryPolicy,
        relayed: RelayedCall,
    ): ClientResponse =
        start(relayed) { client, number ->
            client.start(
                number,
                Request(
                    method = request.method,
                    url = request.url,
                    headers = request.headers.flatMap { (name, value) -> listOf(name, value) },
                    body = request.body,
                    policy = if (comeback.isClosed) null else policy.compiledBytes,
                    timeout = request.timeout?.nanos(),
                    makeKey = request.makeKey,
                    readUpTo = readUpTo,
                ),
            )
        }

    /**
     * Not on the caller's thread, which may be the main thread. And an unconfined caller must not go on with the thread that hears for all calls.
     */
    suspend fun start(
        relayed: RelayedCall,
        begin: (Client, Long) -> Unit,
    ): ClientResponse =
        withContext(Dispatchers.Default) {
            val client = ready()
            val number = numbers.incrementAndGet()
            suspendCancellableCoroutine { continuation ->
                val call = CallInFlight(relayed, continuation)
                inFlight[number] = call
                try {
                    begin(client, number)
                    continuation.invokeOnCancellation { end(client, number) }
                } catch (thrown: Throwable) {
                    if (thrown is VirtualMachineError) throw thrown
                    // The thread that removes a call answers it. When the client goes, all remaining calls are answered too.
                    if (inFlight.remove(number) != null) continuation.resumeWithException(notStarted(thrown))
                }
            }
        }

    @OptIn(ExperimentalCoroutinesApi::class)
    fun close() {
        isClosed = true
        client.invokeOnCompletion { problem ->
            if (problem == null) onClient(client.getCompleted()) { it.shutDown() }
        }
    }

    /** For tests: calls that have not ended here. */
    val known: Int get() = inFlight.size

    /** For tests: calls that Rust has not ended; -1 once there is no client. */
    suspend fun inFlightInRust(): Int = runCatching { client.await().inFlight() }.getOrDefault(-1)

    /** The client; throws what every call would. */
    suspend fun ready(): Client =
        try {
            client.await()
        } catch (problem: NotBuilt) {
            // A new one for each call: an exception belongs to whom it is thrown at.
            throw notBuilt(checkNotNull(problem.cause))
        }

    private fun run() {
        val native =
            try {
                LIBRARY.problem?.let { throw it }
                Client(setting)
            } catch (thrown: Throwable) {
                // The calls throw it.
                client.completeExceptionally(NotBuilt(thrown))
                if (thrown is ComebackUnavailableException) comeback.reportUnavailable(thrown)
                return
            }
        var network: Subscription? = null
        var problem: Throwable? = null
        try {
            network = comeback.subscribe { onChange(native) }
            onChange(native)
            client.complete(native)
            hear(native)
        } catch (thrown: Throwable) {
            problem = thrown
        } finally {
            isClosed = true
            network?.close()
            onClient(native) { it.shutDown() }
            client.complete(native)
            // Only after a fault of ours is anyone left.
            for (number in inFlight.keys) inFlight.remove(number)?.abandoned(problem)
            native.destroy()
        }
    }

    private fun hear(native: Client) {
        while (true) {
            val news = native.receive()
            if (news.isEmpty()) return
            for (message in news) {
                val call = inFlight[message.call] ?: continue
                try {
                    message.event?.let(call::happened)
                    if (comeback.isClosed) endIfWaiting(native, message.call, call)
                    message.end?.let { end -> if (inFlight.remove(message.call) != null) call.ended(end) }
                } catch (thrown: Throwable) {
                    // A fault in one call must not affect the others.
                    if (thrown is VirtualMachineError) throw thrown
                    inFlight.remove(message.call)
                    call.abandoned(thrown)
                }
            }
        }
    }

    /** The network changed, or the [Comeback] was closed. */
    private fun onChange(native: Client) {
        if (comeback.isClosed) {
            for ((number, call) in inFlight) endIfWaiting(native, number, call)
        }
        // The newest snapshot is read where it is published, so that none overtakes a newer one.
        synchronized(publishing) {
            val snapshot = comeback.snapshot
            if (snapshot == published) return
            published = snapshot
            val age = if (snapshot.since == Long.MIN_VALUE) null else comeback.time.nanos() - snapshot.since
            onClient(native) { it.publish(Link.valueOf(snapshot.state.name), age, snapshot.epoch, snapshot.path) }
        }
    }

    private fun endIfWaiting(
        native: Client,
        number: Long,
        call: CallInFlight,
    ) {
        if (call.endIfWaiting()) end(native, number)
    }

    private fun end(
        native: Client,
        number: Long,
    ) {
        onClient(native) { it.cancel(number) }
    }

    private fun notBuilt(cause: Throwable): ClientException =
        when (cause) {
            is ComebackUnavailableException -> ClientException.Unavailable(cause.file, cause.architecture, cause.cause ?: cause)
            is ClientProblem.Refused -> ClientException.InvalidSettings(cause.problem)
            else -> ClientException.Internal("the client could not be built: $cause", null, cause)
        }

    private fun notStarted(thrown: Throwable): IOException =
        when {
            thrown is ClientProblem.Closed || isClosed -> ClientException.Closed(null)
            else -> ClientException.Internal("the call could not be started: $thrown", null, thrown)
        }

    /** If the client is gone, it has ended all calls. Any other problem shows where a call is started or heard. */
    private inline fun onClient(
        native: Client,
        action: (Client) -> Unit,
    ) {
        try {
            action(native)
        } catch (thrown: Throwable) {
            if (thrown is VirtualMachineError) throw thrown
        }
    }

    private class NotBuilt(
        cause: Throwable,
    ) : Exception(cause)
}

private fun Duration.nanos(): Long = inWholeNanoseconds

private val LIBRARY = NativeLibrary("comeback_client", ::uniffiEnsureInitialized)
