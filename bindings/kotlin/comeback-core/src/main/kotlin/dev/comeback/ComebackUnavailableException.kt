// Why Comeback cannot act: no native library for this device, or an HTTP client that is too old.
package dev.comeback

/**
 * The native library could not be loaded, or the HTTP client on the class path is too old.
 * Only [Comeback.selfCheck] throws it; everywhere else requests simply go once.
 *
 * @property file the library that was looked for, or the client's class
 * @property architecture of this device, as the JVM names it
 */
public class ComebackUnavailableException
    internal constructor(
        public val file: String,
        public val architecture: String,
        cause: Throwable,
    ) : IllegalStateException("$file cannot be used on $architecture: $cause", cause) {
        /** @suppress */
        @InternalComebackApi
        public companion object {
            /** For adapters. */
            public fun of(
                file: String,
                architecture: String,
                cause: Throwable,
            ): ComebackUnavailableException = ComebackUnavailableException(file, architecture, cause)
        }
    }
