// The core in Rust as the rest of this module sees it. A test puts another one in its place, for instance one that panics.
package dev.comeback.internal

import dev.comeback.ComebackUnavailableException
import dev.comeback.ffi.Answer
import dev.comeback.ffi.BeginInput
import dev.comeback.ffi.CompiledPolicy
import dev.comeback.ffi.ConnectivityHubInterface
import dev.comeback.ffi.DecideInput
import dev.comeback.ffi.InterruptInput
import dev.comeback.ffi.ResumeInput
import dev.comeback.ffi.ForgivenPolicy as ForgivenCompiledPolicy

/**
 * Every member throws [ComebackUnavailableException] if the native library cannot be used, and some other exception if it panicked or was given
 * bytes that are not its own.
 */
internal interface Core {
    /** Loads the native library, if that is not done yet, and lets it make one decision. */
    fun load()

    /** @throws dev.comeback.ffi.PolicyProblem.Invalid */
    fun compilePolicy(
        preset: String,
        fields: String,
    ): CompiledPolicy

    fun policyFromJsonOr(
        json: String,
        fallback: ByteArray,
    ): ForgivenCompiledPolicy

    fun begin(input: BeginInput): ByteArray

    fun decide(input: DecideInput): Answer

    /** One answer for each of [inputs], in their order; if one cannot be answered none is. */
    fun resume(inputs: List<ResumeInput>): List<Answer>

    fun interrupt(input: InterruptInput): Answer

    fun hub(): ConnectivityHubInterface
}
