// What the fake end of a chain answers.
package dev.comeback.bench

import okhttp3.Protocol
import okhttp3.Request
import okhttp3.Response

internal fun answer(request: Request): Response =
    Response
        .Builder()
        .request(request)
        .protocol(Protocol.HTTP_1_1)
        .code(200)
        .message("OK")
        .build()
