// What OkHttp tries again by itself before anything went out, or after the server refused to look, it still tries for a request that must not be repeated:
// one attempt succeeds, as it does without Comeback. What may have gone out it does not send again.
package dev.comeback.ktor

import dev.comeback.RetryPolicy
import io.ktor.client.engine.HttpClientEngineFactory
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.engine.okhttp.OkHttpConfig
import io.ktor.client.request.get
import io.ktor.client.request.post
import io.ktor.client.request.setBody
import kotlinx.coroutines.runBlocking
import mockwebserver3.MockResponse
import mockwebserver3.MockWebServer
import mockwebserver3.SocketEffect
import okhttp3.ConnectionSpec
import okhttp3.Interceptor
import okhttp3.Protocol
import okhttp3.TlsVersion
import okhttp3.internal.http2.ErrorCode
import okhttp3.tls.HandshakeCertificates
import okhttp3.tls.HeldCertificate
import org.junit.jupiter.api.Test
import java.io.IOException
import java.net.InetAddress
import java.net.ServerSocket
import java.util.concurrent.CopyOnWriteArrayList
import javax.net.ssl.SSLSocket
import kotlin.concurrent.thread
import kotlin.test.assertEquals
import kotlin.test.assertSame
import kotlin.test.assertTrue

class SafeResendsTest {
    private val loopback = InetAddress.getByAddress(byteArrayOf(127, 0, 0, 1))

    private fun okHttp(configure: OkHttpConfig.() -> Unit) =
        object : HttpClientEngineFactory<OkHttpConfig> {
            override fun create(block: OkHttpConfig.() -> Unit) =
                OkHttp.create {
                    configure()
                    block()
                }
        }

    @Test
    fun `an order reaches a server that hangs up on the newest TLS, in one attempt`(): Unit =
        runBlocking {
            val held = HeldCertificate.Builder().addSubjectAlternativeName("127.0.0.1").build()
            val ofServer = HandshakeCertificates.Builder().heldCertificate(held).build()
            val ofClient = HandshakeCertificates.Builder().addTrustedCertificate(held.certificate).build()
            val older = ConnectionSpec.Builder(ConnectionSpec.COMPATIBLE_TLS).tlsVersions(TlsVersion.TLS_1_2).build()
            val engine =
                okHttp {
                    config {
                        sslSocketFactory(ofClient.sslSocketFactory(), ofClient.trustManager)
                        connectionSpecs(listOf(ConnectionSpec.MODERN_TLS, older))
                    }
                }
            ServerSocket(0, 50, loopback).use { server ->
                thread(isDaemon = true) {
                    runCatching {
                        // The first hello is that of TLS 1.3.
                        server.accept().use { it.getInputStream().read() }
                        val raw = server.accept()
                        val socket = ofServer.sslSocketFactory().createSocket(raw, null, raw.port, true) as SSLSocket
                        socket.use {
                            it.useClientMode = false
                            val head = it.inputStream.bufferedReader()
                            while (head.readLine().isNotEmpty()) continue
                            repeat("order".length) { head.read() }
                            it.outputStream.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".encodeToByteArray())
                        }
                    }
                }
                RecordedClient(engine, RetryPolicy.DEFAULT, {}).use { through ->
                    val response = through.client.post("https://127.0.0.1:${server.localPort}/") { setBody("order") }
                    assertEquals(200, response.status.value)
                    assertTrue(through.failed.isEmpty(), "${through.failed}")
                }
            }
        }

    @Test
    fun `an order whose stream the server refused goes again on the same connection, in one attempt`(): Unit =
        runBlocking {
            MockWebServer().use { server ->
                server.protocols = listOf(Protocol.H2_PRIOR_KNOWLEDGE)
                server.enqueue(MockResponse(body = "ok"))
                // Not at the request's start: the server takes an answer from its queue only after that, and might refuse the next one too.
                server.enqueue(MockResponse.Builder().onResponseStart(SocketEffect.CloseStream(ErrorCode.REFUSED_STREAM.httpCode)).build())
                server.enqueue(MockResponse(body = "ok"))
                server.start(loopback, 0)
                val url = server.url("/").toString()
                val engine = okHttp { config { protocols(listOf(Protocol.H2_PRIOR_KNOWLEDGE)) } }
                RecordedClient(engine, RetryPolicy.DEFAULT, {}).use { through ->
                    through.client.get(url)
                    assertEquals(
                        200,
                        through.client
                            .post(url) { setBody("order") }
                            .status.value,
                    )
                    assertTrue(through.failed.isEmpty(), "${through.failed}")
                }
            }
        }

    @Test
    fun `an order that may have gone out is not sent again, and everybody sees the client's own exception`(): Unit =
        runBlocking {
            val ofNetwork = CopyOnWriteArrayList<IOException>()
            val ofEngine = CopyOnWriteArrayList<IOException>()
            val engine =
                okHttp {
                    addInterceptor(noting(ofEngine))
                    addNetworkInterceptor(noting(ofNetwork))
                }
            ScriptedServer { number -> if (number == 2) end() else status(200) }.use { server ->
                RecordedClient(engine, RetryPolicy.DEFAULT, {}).use { through ->
                    through.client.get(server.url)
                    val left = runCatching { through.client.post(server.url) { setBody("order") } }.exceptionOrNull()
                    assertEquals(listOf("", "order"), server.bodies.toList())
                    val original = ofNetwork.single()
                    assertEquals<Class<*>>(IOException::class.java, original.javaClass)
                    assertSame(original, ofEngine.single())
                    assertTrue(generateSequence(left) { it.cause }.any { it === original }, "$left")
                }
            }
        }

    private fun noting(failures: MutableList<IOException>) =
        Interceptor { chain ->
            try {
                chain.proceed(chain.request())
            } catch (failure: IOException) {
                failures += failure
                throw failure
            }
        }
}
