package dev.comeback.demo

import org.junit.jupiter.api.Test
import java.nio.file.Path
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

/** The command line: what it means, and one clear sentence for what it cannot mean. */
class OptionsTest {
    @Test
    fun `nothing asked for is one ride of seed 1 with 24 taps`() {
        assertEquals(Options(seed = 1, taps = 24, rides = 1, lossLateMillis = 5000, returnLateMillis = 500), Options.parse(emptyList()))
    }

    @Test
    fun `every option is understood, with a space or an equals sign`() {
        val expected =
            Options(
                seed = -7,
                trace = Path.of("ride.csv"),
                from = 60,
                seconds = 45,
                taps = 10,
                rides = 3,
                lossLateMillis = 0,
                returnLateMillis = 250,
                client = Client.FACTORY,
                json = true,
                svg = Path.of("ride.svg"),
            )
        val words =
            "--seed -7 --trace ride.csv --from 60 --seconds=45 --taps 10 --rides=3 --loss-late-ms 0 --return-late-ms 250 " +
                "--client factory --json --svg ride.svg"
        assertEquals(expected, Options.parse(words.split(' ')))
    }

    @Test
    fun `what cannot be obeyed is refused in one sentence that names it`() {
        assertRefused("There is no option \"--tap\"; --help lists the options.", "--tap", "5")
        assertRefused("There is no option \"ride.csv\"; --help lists the options.", "ride.csv")
        assertRefused("--taps needs a value; --help lists the options.", "--taps")
        assertRefused("--taps takes a whole number from 1 to 500, not \"many\".", "--taps", "many")
        assertRefused("--taps takes a whole number from 1 to 500, not \"0\".", "--taps", "0")
        assertRefused("--seed takes a whole number, not \"1.5\".", "--seed", "1.5")
        assertRefused("--seconds takes a whole number from 12 to 3600, not \"5\".", "--seconds", "5")
        assertRefused("--client takes okhttp or factory or ktor, not \"curl\".", "--client", "curl")
        assertRefused("--json takes no value.", "--json=yes")
        assertRefused("--from says where in a trace to begin, so it needs --trace FILE.", "--from", "5")
        assertRefused("--taps 100 in --rides 50 are 10000 threads; at most 4000.", "--taps", "100", "--rides", "50")
        assertRefused("--svg: there is no folder ${Path.of("no-such-folder").toAbsolutePath()}.", "--svg", "no-such-folder/ride.svg")
    }

    @Test
    fun `serve has a port and nothing else`() {
        assertEquals(8080, Options.parseServe(emptyList()))
        assertEquals(9000, Options.parseServe(listOf("--port", "9000")))
        assertEquals(0, Options.parseServe(listOf("--port=0")))
        for (
        (arguments, sentence) in
        mapOf(
            listOf("--port") to "--port needs a value; --help lists the options.",
            listOf("--port", "70000") to "--port takes a whole number from 0 to 65535, not \"70000\".",
            listOf("--taps", "5") to "serve takes --port and nothing else, not \"--taps 5\".",
        )
        ) {
            assertEquals(sentence, assertFailsWith<OptionProblem> { Options.parseServe(arguments) }.message)
        }
    }

    private fun assertRefused(
        sentence: String,
        vararg arguments: String,
    ) {
        assertEquals(sentence, assertFailsWith<OptionProblem> { Options.parse(arguments.toList()) }.message)
    }
}
