// Tells Comeback's own code inside a client from the app's.
package dev.comeback.driver

import dev.comeback.InternalComebackApi

/**
 * An interceptor of Comeback's, whichever adapter put it there: it reads no body, and sends nothing through another client. Known by its type, because shrinkers
 * rename packages.
 *
 * @suppress
 */
@InternalComebackApi
public interface OwnCode
