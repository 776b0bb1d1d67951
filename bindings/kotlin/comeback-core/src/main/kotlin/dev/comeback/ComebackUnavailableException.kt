// Why this device cannot use the native library.
package dev.comeback

/**
 * The native library could not be loaded. Only [Comeback.selfCheck] throws it; everywhere else requests simply go once.
 *
 * @property file the library that was looked for
 * @property architecture of this device, as the JVM names it
 */
public class ComebackUnavailableException(
    public val file: String,
    public val architecture: String,
    cause: Throwable,
) : IllegalStateException("$file cannot be used on $architecture: $cause", cause)
