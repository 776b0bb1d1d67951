// Tells the interceptors of an OkHttp client apart: Comeback's, OkHttp's, and those of the app.
package dev.comeback.driver.okhttp

import dev.comeback.InternalComebackApi
import dev.comeback.driver.OwnCode
import okhttp3.Interceptor

/**
 * One of Comeback's.
 *
 * @suppress
 */
@InternalComebackApi
public interface OwnInterceptor :
    Interceptor,
    OwnCode

/**
 * Whether [interceptor] is the app's. OkHttp's own, for instance those for logging and compression, read bodies that may be read again, and send nothing
 * elsewhere.
 *
 * @suppress
 */
@InternalComebackApi
public fun isForeign(interceptor: Interceptor): Boolean = interceptor !is OwnCode && !interceptor.javaClass.name.startsWith("okhttp3.")
