// The scripts of tests/vectors/android.json: what Android calls back, and what is known then.
package dev.comeback.android

import dev.comeback.NetworkSnapshot
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.boolean
import kotlinx.serialization.json.jsonArray
import kotlinx.serialization.json.jsonObject
import kotlinx.serialization.json.jsonPrimitive
import kotlinx.serialization.json.long
import org.junit.Assert.assertEquals

internal class Script(
    private val case: JsonObject,
) {
    val name = case.text("name")
    val hasDefaultNetwork = case.flag("default_network")
    val isRefused = case.flag("refused")
    val start = Expected(case.getValue("start").jsonObject)
    val steps = case.getValue("steps").jsonArray.map { Step(it.jsonObject) }

    fun runsOn(api: Int): Boolean =
        api >= (case["from_api"]?.jsonPrimitive?.long ?: 0) && api <= (case["to_api"]?.jsonPrimitive?.long ?: Long.MAX_VALUE)

    class Step(
        step: JsonObject,
    ) {
        val callbacks = step.getValue("callbacks").jsonArray.map { Callback(it.jsonObject) }
        val expected = Expected(step.getValue("expect").jsonObject)
    }

    class Callback(
        private val callback: JsonObject,
    ) {
        val on = callback.text("on")
        val network = callback.getValue("network").jsonPrimitive.long
        val blocked get() = callback.flag("blocked")
        val suspended get() = callback.flag("suspended")
        val validated get() = callback.flag("validated")
        val hasCaptivePortal get() = callback.flag("captive_portal")
        val isVpn get() = callback.flag("vpn")
    }

    class Expected(
        private val expect: JsonObject,
    ) {
        /** [before] and [after] the step. */
        fun check(
            step: String,
            before: NetworkSnapshot,
            after: NetworkSnapshot,
        ) {
            val edges = after.epoch - before.epoch
            val found = "edges: $edges, state: ${after.state.name.lowercase()}, path: ${after.path}"
            assertEquals(step, "edges: ${expect["edges"]}, state: ${expect.text("state")}, path: ${expect["path"]}", found)
        }
    }

    companion object {
        fun all(): List<Script> = cases("android.json").map(::Script)

        /** The vectors lie in the tests' resources, so that a device has them too. */
        fun cases(file: String): List<JsonObject> {
            val text = checkNotNull(Script::class.java.getResourceAsStream("/$file")) { "$file is missing" }.reader().readText()
            return Json
                .parseToJsonElement(text)
                .jsonObject
                .getValue("cases")
                .jsonArray
                .map { it.jsonObject }
        }
    }
}

internal fun JsonObject.text(name: String): String = getValue(name).jsonPrimitive.content

internal fun JsonObject.flag(name: String): Boolean = get(name)?.jsonPrimitive?.boolean ?: false
