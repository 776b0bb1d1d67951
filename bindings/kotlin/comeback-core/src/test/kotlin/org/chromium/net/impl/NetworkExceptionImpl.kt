// A stand-in for Cronet's exception of this name.
package org.chromium.net.impl

import java.io.IOException

internal class NetworkExceptionImpl(
    cause: Throwable? = null,
) : IOException("Exception in CronetUrlRequest: net::ERR_CONNECTION_RESET", cause)
