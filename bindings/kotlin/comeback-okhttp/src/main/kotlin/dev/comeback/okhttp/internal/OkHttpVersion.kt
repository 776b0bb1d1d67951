// Which OkHttp is on the class path, and whether it is new enough.
package dev.comeback.okhttp.internal

import dev.comeback.ComebackUnavailableException
import dev.comeback.driver.AdapterCheck
import dev.comeback.driver.orNull
import okhttp3.OkHttp

/** OkHttp's part of [dev.comeback.Comeback.selfCheck]. Retrofit brings 4.12, which Maven keeps. */
internal class OkHttpVersion(
    private val version: String?,
) : AdapterCheck {
    /** For the service loader. */
    @Suppress("unused")
    constructor() : this(atHand)

    override fun problem(): ComebackUnavailableException? {
        val parts = version?.split('.', '-') ?: return null
        val major = parts[0].toIntOrNull() ?: return null
        val minor = parts.getOrNull(1)?.toIntOrNull() ?: return null
        return if (major < MAJOR || (major == MAJOR && minor < MINOR)) tooOld(version) else null
    }

    companion object {
        private const val MAJOR = 5
        private const val MINOR = 4

        /** Null if it does not say. The constant itself would be the one that this was compiled with. */
        val atHand: String? = orNull { OkHttp::class.java.getField("VERSION").get(null) as String }
    }
}

internal fun tooOld(
    version: String,
    problem: LinkageError? = null,
) = unavailable(IllegalStateException("Comeback needs OkHttp 5.4 or newer, and this is $version", problem))

internal fun unavailable(problem: Throwable) =
    ComebackUnavailableException.of("okhttp3.OkHttpClient", System.getProperty("os.arch").orEmpty(), problem)
