package dev.comeback.demo

import org.junit.jupiter.api.Test
import kotlin.test.assertEquals

/** The shape of `--json`, which scripts read. */
class JsonReportTest {
    @Test
    fun `the report is one line with both clients, the seed and the trace`() {
        assertEquals(
            """{"clients":[""" +
                """{"name":"comeback","taps":3,"succeeded":2,"gave_up":1,"sends":4,""" +
                """"lag_p50_ms":250,"lag_p90_ms":4350,"orders":3,"duplicates":0},""" +
                """{"name":"hand-written","taps":3,"succeeded":2,"gave_up":1,"sends":3,""" +
                """"lag_p50_ms":200,"lag_p90_ms":4800,"orders":3,"duplicates":1}""" +
                """],"seed":42,"trace":"a \"test\" ride"}""",
            jsonReport(Example.run),
        )
    }

    @Test
    fun `a client without a success has no lag`() {
        val ride = Ride("none", listOf(false))
        val client = ClientRun("none", "", ride, emptyList(), ServerCounts(0, 0, emptyMap()))
        val expected =
            """{"name":"none","taps":0,"succeeded":0,"gave_up":0,"sends":0,"lag_p50_ms":null,"lag_p90_ms":null,"orders":0,"duplicates":0}"""
        assertEquals(
            """{"clients":[$expected,$expected],"seed":1,"trace":"none"}""",
            jsonReport(RideRun(1, ride, client, client, emptyList())),
        )
    }
}
