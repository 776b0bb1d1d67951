// What the app's hooks, plugins and monitors see of an attempt, and what they cannot change; on a mocked engine in virtual time.
package dev.comeback.ktor

import dev.comeback.OutcomeClass
import dev.comeback.RetryPolicy
import dev.comeback.ktor.MockEngineFixture.Companion.KEY
import io.ktor.client.call.body
import io.ktor.client.plugins.api.Send
import io.ktor.client.plugins.api.createClientPlugin
import io.ktor.client.request.HttpRequestBuilder
import io.ktor.client.request.get
import io.ktor.client.request.header
import io.ktor.client.request.post
import io.ktor.client.request.request
import io.ktor.client.request.setBody
import io.ktor.client.request.takeFrom
import io.ktor.client.statement.request
import io.ktor.http.HttpMethod
import io.ktor.http.content.ByteArrayContent
import io.ktor.http.content.OutgoingContent
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.test.runTest
import org.junit.jupiter.api.Test
import java.net.SocketTimeoutException
import kotlin.test.assertEquals

@OptIn(ExperimentalCoroutinesApi::class)
class HooksTest {
    @Test
    fun `what a plugin further in writes into one attempt is not in the next`() =
        runTest {
            val ground = MockEngineFixture(this)
            val signing =
                createClientPlugin("Signing") {
                    on(Send) { request ->
                        request.headers.append("Signature", "one")
                        request.url.parameters.append("nonce", "two")
                        proceed(request)
                    }
                }
            val client = ground.client(after = { install(signing) }) { number -> status(if (number < 3) 503 else 200) }
            client.get("http://host/")
            assertEquals(List(3) { listOf("one") }, ground.sent.map { it.headers.getAll("Signature") })
            assertEquals(List(3) { "nonce=two" }, ground.sent.map { it.url.encodedQuery })
        }

    @Test
    fun `a request that takes another's choices keeps its own`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client = ground.client { status(503) }
            val template = HttpRequestBuilder().apply { makeIdempotencyKey() }
            client.post("http://host/") {
                retryPolicy(RetryPolicy.OFF)
                takeFrom(template)
            }
            assertEquals(1, ground.sent.size)
        }

    @Test
    fun `the hook sees the attempt and its reason, and cannot touch method, body and key`() =
        runTest {
            val ground = MockEngineFixture(this)
            val seen = ArrayList<String>()
            val configure: ComebackRetryConfig.() -> Unit = {
                modifyRequest { request ->
                    seen += "$attempt $retryCount ${response?.status?.value} ${cause?.message}"
                    request.header("X-Attempt", attempt)
                    request.headers[KEY] = "another"
                    request.method = HttpMethod.Delete
                    request.setBody("other")
                }
            }
            val client =
                ground.client(configure = configure) { number ->
                    if (number ==
                        1
                    ) {
                        status(503)
                    } else if (number == 2) {
                        throw SocketTimeoutException("late")
                    } else {
                        status(200)
                    }
                }
            client.post("http://host/") {
                header(KEY, "mine")
                setBody("body")
            }
            assertEquals(listOf("2 1 503 null", "3 2 null late"), seen)
            assertEquals(listOf(null, "2", "3"), ground.sent.map { it.headers["X-Attempt"] })
            assertEquals(listOf<String?>("mine", "mine", "mine"), ground.sent.map { it.headers[KEY] })
            assertEquals(setOf(HttpMethod.Post), ground.sent.map { it.method }.toSet())
            assertEquals(setOf("body"), ground.sent.map { (it.body as OutgoingContent.ByteArrayContent).bytes().decodeToString() }.toSet())
        }

    @Test
    fun `hooks that throw change nothing`() =
        runTest {
            val ground = MockEngineFixture(this)
            val configure: ComebackRetryConfig.() -> Unit = {
                policyFor = { error("policy") }
                classify = { _, _, _ -> error("classify") }
                label = { error("label") }
                modifyRequest { error("modify") }
            }
            val client = ground.client(configure = configure) { number -> if (number == 1) status(503) else status(200) }
            client.monitor.subscribe(ComebackRetryEvent) { error("event") }
            assertEquals(200, client.get("http://host/").status.value)
        }

    @Test
    fun `the app's word on a class counts, and never lifts what may be repeated`() =
        runTest {
            val ground = MockEngineFixture(this)
            val client =
                ground.client(configure = {
                    classify =
                        { _, response, _ -> if (response?.status?.value == 404) OutcomeClass.TRANSIENT_STATUS else null }
                }) { status(404) }
            client.get("http://host/")
            assertEquals(4, ground.sent.size)
            client.post("http://host/")
            assertEquals(5, ground.sent.size)
        }

    @Test
    fun `the client's monitor hears of each retry in Ktor's manner`() =
        runTest {
            val ground = MockEngineFixture(this)
            val heard = ArrayList<String>()
            val client =
                ground.client { number ->
                    if (number ==
                        1
                    ) {
                        status(503)
                    } else if (number == 2) {
                        throw SocketTimeoutException("late")
                    } else {
                        status(200)
                    }
                }
            client.monitor.subscribe(ComebackRetryEvent) { heard += "${it.retryCount} ${it.response?.status?.value} ${it.cause?.message}" }
            client.get("http://host/")
            assertEquals(listOf("1 503 null", "2 null late"), heard)
        }
}
