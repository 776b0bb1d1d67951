// Says what kind of failure an exception of Ktor's client or of one of its engines is.
package dev.comeback.ktor

import dev.comeback.FailureKind
import dev.comeback.driver.FailureTypes
import dev.comeback.driver.everythingBehind
import io.ktor.client.network.sockets.ConnectTimeoutException
import io.ktor.client.plugins.HttpRequestTimeoutException
import io.ktor.client.plugins.SendCountExceedException
import io.ktor.client.utils.unwrapCancellationException
import io.ktor.utils.io.ClosedByteChannelException
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.channels.ClosedReceiveChannelException

/**
 * The kind of [failure], which is unwrapped from any cancellation that carried it. A type proves nothing about an attempt: it may be that of another
 * request, which a plugin further in made.
 */
internal fun failureKind(
    failure: Throwable,
    body: BodyWatch,
    transports: Set<Class<out Throwable>>,
): FailureKind {
    val thrown = body.thrown
    if (thrown != null && isBehind(thrown, failure)) return FailureKind.REQUEST_BODY
    return failureKind(failure, transports)
}

/** A channel wraps what closed it anew each time it is asked. */
private fun isBehind(
    thrown: Throwable,
    failure: Throwable,
): Boolean {
    val behind = everythingBehind(failure).keys
    return generateSequence(thrown) { it.cause }.take(CAUSES).any { it in behind }
}

private const val CAUSES = 8

internal fun failureKind(
    failure: Throwable,
    transports: Set<Class<out Throwable>> = emptySet(),
): FailureKind = TYPES.kindOf(failure, transports)

private val TYPES =
    FailureTypes(
        clientPackages = listOf("io.ktor.", "kotlinx.io.", "kotlinx.coroutines.", "okhttp3.", "okio."),
        isClients = { clientKind(it) != null },
        clientKind = ::clientKind,
    )

private fun clientKind(thrown: Throwable): FailureKind? =
    when (thrown) {
        is HttpRequestTimeoutException, is TimeoutCancellationException -> FailureKind.ATTEMPT_TIMEOUT

        is ConnectTimeoutException -> FailureKind.CONNECT_TIMEOUT

        // The cap of another mechanism.
        is SendCountExceedException -> FailureKind.UNLISTED

        // Its cause says more, if it has one.
        is ClosedByteChannelException -> if (thrown.cause == null) FailureKind.UNEXPECTED_END else null

        is ClosedReceiveChannelException -> FailureKind.UNEXPECTED_END

        else -> byName(thrown)
    }

/** The engines' own types; none of them is on every app's class path. */
private fun byName(thrown: Throwable): FailureKind? =
    when (thrown.javaClass.name) {
        "io.ktor.client.engine.cio.FailToConnectException" -> {
            FailureKind.CONNECT_TIMEOUT
        }

        "okhttp3.internal.http2.StreamResetException" -> {
            FailureKind.STREAM_RESET
        }

        // How Ktor says that a body it reads by itself has ended too early: it has no type of its own for it.
        "java.lang.IllegalStateException" -> {
            if (thrown.message?.startsWith("Content-Length mismatch") == true) FailureKind.UNEXPECTED_END else null
        }

        else -> {
            null
        }
    }

/** Whether time ended an attempt, so that its connection may be dead: a limit of ours, or a timeout of the client's. */
internal fun isOutOfTime(failure: Throwable): Boolean =
    failure is TimeoutCancellationException || failureKind(failure.unwrapCancellationException()) in OUT_OF_TIME

private val OUT_OF_TIME = setOf(FailureKind.ATTEMPT_TIMEOUT, FailureKind.READ_TIMEOUT, FailureKind.WRITE_TIMEOUT)
