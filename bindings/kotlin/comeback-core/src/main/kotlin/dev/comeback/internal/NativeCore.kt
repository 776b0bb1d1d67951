// The core in the native library, and the only place that calls into it.
package dev.comeback.internal

import dev.comeback.NetworkSnapshot
import dev.comeback.driver.NativeLibrary
import dev.comeback.driver.RequestHead
import dev.comeback.ffi.Answer
import dev.comeback.ffi.BeginInput
import dev.comeback.ffi.CompiledPolicy
import dev.comeback.ffi.CompiledPresets
import dev.comeback.ffi.ConnectivityHub
import dev.comeback.ffi.ConnectivityHubInterface
import dev.comeback.ffi.DecideInput
import dev.comeback.ffi.InterruptInput
import dev.comeback.ffi.ResumeInput
import dev.comeback.ffi.uniffiEnsureInitialized
import dev.comeback.ffi.FailureKind as CoreFailureKind
import dev.comeback.ffi.ForgivenPolicy as ForgivenCompiledPolicy

/** What cannot make one decision cannot be used, for instance because a shrinker took away what the binding needs. */
internal object NativeCore : Core {
    private val library =
        NativeLibrary("comeback") {
            uniffiEnsureInitialized()
            decideOnce()
        }

    private fun decideOnce() {
        val call =
            dev.comeback.ffi.begin(
                BeginInput(RequestHead("GET").toCore(), false, true, 0, 0, null),
            )
        dev.comeback.ffi.decide(
            DecideInput(
                policy = CompiledPresets.DEFAULT.bytes,
                call = call,
                noted = NetworkSnapshot.UNKNOWN.toCore(),
                now = 0,
                wallMs = null,
                network = NetworkSnapshot.UNKNOWN.toCore(),
                status = 0,
                failure = CoreFailureKind.RESET,
                retryAfter = emptyList(),
                date = null,
                shouldRetry = null,
                lookUp = 0,
                sentNothing = false,
                bodyUntouched = false,
                bodySpent = false,
                wentOut = null,
                inner = emptyList(),
                overrule = null,
            ),
        )
    }

    override fun load() {
        library.problem?.let { throw it }
    }

    override fun compilePolicy(
        preset: String,
        fields: String,
    ): CompiledPolicy {
        load()
        return dev.comeback.ffi.compilePolicy(preset, fields)
    }

    override fun policyFromJsonOr(
        json: String,
        fallback: ByteArray,
    ): ForgivenCompiledPolicy {
        load()
        return dev.comeback.ffi.policyFromJsonOr(json, fallback)
    }

    override fun begin(input: BeginInput): ByteArray {
        load()
        return dev.comeback.ffi.begin(input)
    }

    override fun decide(input: DecideInput): Answer {
        load()
        return dev.comeback.ffi.decide(input)
    }

    override fun resume(inputs: List<ResumeInput>): List<Answer> {
        load()
        return dev.comeback.ffi.resume(inputs)
    }

    override fun interrupt(input: InterruptInput): Answer {
        load()
        return dev.comeback.ffi.interrupt(input)
    }

    override fun hub(): ConnectivityHubInterface {
        load()
        return ConnectivityHub()
    }
}
