// The native core as tests want it: counted, or at fault.
package dev.comeback

import dev.comeback.ffi.Answer
import dev.comeback.ffi.BeginInput
import dev.comeback.ffi.CompiledPolicy
import dev.comeback.ffi.ConnectivityHub
import dev.comeback.ffi.ConnectivityHubInterface
import dev.comeback.ffi.DecideInput
import dev.comeback.ffi.InterruptInput
import dev.comeback.ffi.ResumeInput
import dev.comeback.ffi.provokePanic
import dev.comeback.internal.Core
import dev.comeback.internal.NativeCore
import java.util.concurrent.ConcurrentLinkedQueue
import dev.comeback.ffi.ForgivenPolicy as ForgivenCompiledPolicy
import dev.comeback.ffi.NetworkSnapshot as CoreSnapshot

/** The real core; notes every native call by its name. [before] runs before each and may throw, for instance by a real panic. */
internal class TestCore(
    private val before: (String) -> Unit = {},
) : Core {
    val calls = ConcurrentLinkedQueue<String>()

    private fun <T> noted(
        name: String,
        call: () -> T,
    ): T {
        calls += name
        before(name)
        return call()
    }

    override fun load() = noted("load") { NativeCore.load() }

    override fun compilePolicy(
        preset: String,
        fields: String,
    ): CompiledPolicy = noted("compilePolicy") { NativeCore.compilePolicy(preset, fields) }

    override fun policyFromJsonOr(
        json: String,
        fallback: ByteArray,
    ): ForgivenCompiledPolicy = noted("policyFromJsonOr") { NativeCore.policyFromJsonOr(json, fallback) }

    override fun begin(input: BeginInput): ByteArray = noted("begin") { NativeCore.begin(input) }

    override fun decide(input: DecideInput): Answer = noted("decide") { NativeCore.decide(input) }

    override fun resume(inputs: List<ResumeInput>): List<Answer> = noted("resume") { NativeCore.resume(inputs) }

    override fun interrupt(input: InterruptInput): Answer = noted("interrupt") { NativeCore.interrupt(input) }

    override fun hub(): ConnectivityHubInterface = noted("hub") { TestHub(ConnectivityHub()) }

    private inner class TestHub(
        private val hub: ConnectivityHub,
    ) : ConnectivityHubInterface,
        AutoCloseable by hub {
        override fun noneAtStart(now: Long): CoreSnapshot = noted("noneAtStart") { hub.noneAtStart(now) }

        override fun available(
            now: Long,
            handle: Long,
            blocked: Boolean,
            suspended: Boolean,
            validated: Boolean,
        ): CoreSnapshot = noted("available") { hub.available(now, handle, blocked, suspended, validated) }

        override fun capabilities(
            now: Long,
            handle: Long,
            suspended: Boolean,
            validated: Boolean,
        ): CoreSnapshot = noted("capabilities") { hub.capabilities(now, handle, suspended, validated) }

        override fun blocked(
            now: Long,
            handle: Long,
            blocked: Boolean,
        ): CoreSnapshot = noted("blocked") { hub.blocked(now, handle, blocked) }

        override fun lost(
            now: Long,
            handle: Long,
        ): CoreSnapshot = noted("lost") { hub.lost(now, handle) }

        override fun failed(now: Long): CoreSnapshot = noted("failed") { hub.failed(now) }

        override fun deliberate(
            now: Long,
            on: Boolean,
        ): CoreSnapshot = noted("deliberate") { hub.deliberate(now, on) }

        override fun restored(now: Long): CoreSnapshot = noted("restored") { hub.restored(now) }
    }

    companion object {
        /** A core in which these calls really panic. */
        fun panickingIn(vararg names: String): TestCore = TestCore { if (it in names) provokePanic() }
    }
}
