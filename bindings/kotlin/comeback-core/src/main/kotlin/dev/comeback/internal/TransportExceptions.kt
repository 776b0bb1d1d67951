// Exceptions that mean nothing themselves: they carry what a transport, or another thread, threw.
package dev.comeback.internal

import dev.comeback.Comeback
import java.io.UncheckedIOException
import java.lang.reflect.InvocationTargetException
import java.lang.reflect.UndeclaredThrowableException
import java.util.concurrent.CompletionException
import java.util.concurrent.ExecutionException

/** Whether [thrown] is of a transport: of one that is known here, or of one of [registered], which an app names in [Comeback.Builder.transportExceptions]. */
internal fun isTransports(
    thrown: Throwable,
    registered: Set<Class<out Throwable>>,
): Boolean =
    registered.any { it.isInstance(thrown) } || superclasses(thrown).any { it.name in NETWORK_EXCEPTIONS || it.name.startsWith(CRONET) }

/** What [thrown] is about: its cause, if it only wraps that one. */
internal fun unwrapped(
    thrown: Throwable,
    registered: Set<Class<out Throwable>>,
): Throwable {
    val seen = ArrayList<Throwable>(1)
    var judged = thrown
    while (judged.wraps(registered)) {
        seen += judged
        judged = judged.cause?.takeIf { cause -> seen.none { it === cause } } ?: break
    }
    return judged
}

private fun Throwable.wraps(registered: Set<Class<out Throwable>>): Boolean =
    this is ExecutionException ||
        this is CompletionException ||
        this is UncheckedIOException ||
        this is InvocationTargetException ||
        this is UndeclaredThrowableException ||
        isTransports(this, registered)

private fun superclasses(thrown: Throwable): Sequence<Class<*>> = generateSequence<Class<*>>(thrown.javaClass) { it.superclass }

/** Apollo's, of its three generations; its others carry a server's meaning. A shrinker that renames them makes an app name them itself. */
private val NETWORK_EXCEPTIONS =
    setOf(
        "com.apollographql.apollo.exception.ApolloNetworkException",
        "com.apollographql.apollo3.exception.ApolloNetworkException",
        "com.apollographql.apollo.ApolloNetworkException",
    )

/** All of Cronet's exceptions are its network's. */
private const val CRONET = "org.chromium.net."
