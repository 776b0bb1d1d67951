// A retry policy: which attempts are made, how far apart, and for how long. Its rules live in the core; this only names them.
package dev.comeback

import dev.comeback.driver.DriverFacts
import dev.comeback.ffi.CompiledPolicy
import dev.comeback.ffi.CompiledPresets
import dev.comeback.ffi.PolicyProblem
import dev.comeback.internal.ChoiceField
import dev.comeback.internal.Core
import dev.comeback.internal.DurationField
import dev.comeback.internal.MillisField
import dev.comeback.internal.NativeCore
import dev.comeback.internal.PlainField
import dev.comeback.internal.asMillis
import dev.comeback.internal.json
import kotlin.time.Duration

/**
 * Says whether, when and how often a failed request goes again. Immutable, checked when it is built, cheap to share; may be used from any thread.
 *
 * ```
 * val policy = RetryPolicy(base = RetryPolicy.READ) {
 *     maxAttempts = 6
 *     maxElapsed = 30.seconds
 *     jitter = Jitter.EQUAL
 * }
 * ```
 *
 * If the native library cannot be used, building a policy does not fail: the policy then lets requests pass, as [OFF] does.
 */
public class RetryPolicy private constructor(
    /** Null: no policy. */
    internal val compiled: CompiledPolicy?,
    private val text: String,
    /** What it was built from, if another policy can be built over it. */
    private val origin: Origin?,
) {
    private class Origin(
        val preset: String,
        val fields: Map<String, Any?>,
    )

    private constructor(compiled: CompiledPolicy, origin: Origin?) : this(compiled, compiled.text, origin)

    /**
     * What a driver needs before a first attempt; null: let the request pass, and never ask.
     *
     * @suppress
     */
    @InternalComebackApi
    public val driverFacts: DriverFacts? = compiled?.let(::DriverFacts)

    /**
     * Itself, for another of Comeback's native libraries; null: no policy. Opaque, and not to be changed.
     *
     * @suppress
     */
    @InternalComebackApi
    public val compiledBytes: ByteArray? get() = compiled?.bytes

    /** The windows its waits are drawn from, one per retry, for people to read. */
    public fun schedule(): String = compiled?.schedule ?: text

    /** The fields that differ from the defaults, for people to read. */
    override fun toString(): String = text

    /**
     * Builds a policy over [base]. It holds only what was set; everything else comes from [base], and the core checks the whole.
     *
     * A property that reads null was not set here (or was set to null, which means none).
     */
    public class Builder internal constructor(
        base: RetryPolicy,
        private val core: Core,
    ) {
        private val preset: String
        private val fields: MutableMap<String, Any?>

        init {
            val origin = base.origin ?: throw PolicyException("base", base.toString(), "must be a preset other than off, or built over one")
            preset = origin.preset
            fields = LinkedHashMap(origin.fields)
        }

        /** Counted attempts, the first included: 1 to 100. */
        public var maxAttempts: Int? by PlainField(fields, "max_attempts")

        /** No attempt starts later than this after the call began: from 100 ms, as all durations at most 24 h. */
        public var maxElapsed: Duration? by DurationField(fields, "max_elapsed")

        /** [maxElapsed] in milliseconds. */
        public var maxElapsedMillis: Long? by MillisField(fields, "max_elapsed")

        /** Whether an attempt in flight is ended at the deadline too. */
        public var cutAtDeadline: Boolean? by PlainField(fields, "cut_at_deadline")

        /** How long one attempt may take until its response head: from 100 ms; null: no limit. */
        public var attemptTimeout: Duration? by DurationField(fields, "attempt_timeout")

        /** [attemptTimeout] in milliseconds. */
        public var attemptTimeoutMillis: Long? by MillisField(fields, "attempt_timeout")

        /** How long one route's connect may take: from 100 ms; null: the client's own limit. */
        public var connectTimeout: Duration? by DurationField(fields, "connect_timeout")

        /** [connectTimeout] in milliseconds. */
        public var connectTimeoutMillis: Long? by MillisField(fields, "connect_timeout")

        /** The first window: from 1 ms to [cap]. */
        public var base: Duration? by DurationField(fields, "base")

        /** [base] in milliseconds. */
        public var baseMillis: Long? by MillisField(fields, "base")

        /** By how much windows grow: 1 to 10, at most three decimals. */
        public var factor: Double? by PlainField(fields, "factor")

        /** The largest window. */
        public var cap: Duration? by DurationField(fields, "cap")

        /** [cap] in milliseconds. */
        public var capMillis: Long? by MillisField(fields, "cap")

        /** How a wait is drawn from its window. */
        public var jitter: Jitter? by ChoiceField(fields, "jitter", Jitter::valueOf)

        /** Other windows after 429 and 503. */
        public fun overload(
            base: Duration,
            factor: Double,
            cap: Duration,
        ) {
            fields["overload"] = mapOf("base" to base.asMillis(), "factor" to factor, "cap" to cap.asMillis())
        }

        /** Other windows after 429 and 503, in milliseconds. */
        public fun overloadMillis(
            baseMillis: Long,
            factor: Double,
            capMillis: Long,
        ) {
            fields["overload"] = mapOf("base" to baseMillis, "factor" to factor, "cap" to capMillis)
        }

        /** The same windows after every failure. */
        public fun noOverload() {
            fields["overload"] = null
        }

        /** All statuses that are retried: 400 to 599 each. */
        public var retryStatuses: Set<Int>? by PlainField(fields, "retry_statuses")

        /** Which requests may be repeated although they may have reached the server. */
        public var repeat: Repeat? by ChoiceField(fields, "repeat", Repeat::valueOf)

        /** The header of the idempotency key. */
        public var keyHeader: String?
            get() = key["header"] as String?
            set(value) = setKey("header", value)

        /** How the key is written into it. */
        public var keyForm: KeyForm?
            get() = (key["form"] as String?)?.let { KeyForm.valueOf(it.uppercase()) }
            set(value) = setKey("form", value?.name?.lowercase())

        /** Whether every POST and PATCH without a key gets one. The server has to know what it means. */
        public var makeKey: Boolean?
            get() = key["make"] as Boolean?
            set(value) = setKey("make", value)

        /**
         * Whether the HTTP client may send a request again by itself when a pooled connection turns out to be dead. It never does so with a request that must
         * not be repeated: such a POST fails where the client alone would send it twice.
         */
        public var clientResends: ClientResends? by ChoiceField(fields, "client_resends", ClientResends::valueOf)

        /** The header by which a server says `true` or `false` to a retry; null: none. */
        public var shouldRetryHeader: String? by PlainField(fields, "should_retry_header")

        /** Which waits end when the network comes back. */
        public var wake: Wake? by ChoiceField(fields, "wake", Wake::valueOf)

        /** A woken call waits up to this much more, at random: at most [cap]. */
        public var wakeSpread: Duration? by DurationField(fields, "wake_spread")

        /** [wakeSpread] in milliseconds. */
        public var wakeSpreadMillis: Long? by MillisField(fields, "wake_spread")

        /** What becomes of a call that fails while there is no network. */
        public var offline: Offline? by ChoiceField(fields, "offline", Offline::valueOf)

        /** A parked call makes one attempt after this long all the same: from 1 s; null: it does not. */
        public var offlineProbe: Duration? by DurationField(fields, "offline_probe")

        /** [offlineProbe] in milliseconds. */
        public var offlineProbeMillis: Long? by MillisField(fields, "offline_probe")

        /**
         * How many bytes of a response's body are read within the attempt, so that a body which breaks off is a failed attempt too: 0 to 16 MiB
         * (16777216); null: none. Of a longer body the rest is handed on unread. Event streams and upgrades are never read.
         */
        public var readBody: Int? by PlainField(fields, "read_body")

        @Suppress("UNCHECKED_CAST")
        private val key: Map<String, Any?> get() = fields["key"] as Map<String, Any?>? ?: emptyMap()

        private fun setKey(
            name: String,
            value: Any?,
        ) {
            fields["key"] = key + (name to value)
        }

        /** @throws PolicyException for an invalid value; it names field, value and rule */
        public fun build(): RetryPolicy {
            val origin = Origin(preset, LinkedHashMap(fields))
            return compile(core, preset, json(fields), origin)
        }
    }

    public companion object {
        /** 4 attempts within 20 s; windows 1, 2, 4, 8 s. */
        @JvmField
        public val DEFAULT: RetryPolicy = preset("default", CompiledPresets.DEFAULT)

        /**
         * For requests that must not happen twice: 3 attempts within 15 s. 409 is retried if the request has a key, and the HTTP client does not
         * re-send on its own.
         */
        @JvmField
        public val PAYMENT: RetryPolicy = preset("payment", CompiledPresets.PAYMENT)

        /** For what a person waits for: 5 attempts within 20 s, then it ends. */
        @JvmField
        public val READ: RetryPolicy = preset("read", CompiledPresets.READ)

        /** For work nobody watches, near its server: 8 attempts within 20 s; windows from 20 to 500 ms. */
        @JvmField
        public val BATCH: RetryPolicy = preset("batch", CompiledPresets.BATCH)

        /** No policy: requests go as if Comeback were not there. */
        @JvmField
        public val OFF: RetryPolicy = RetryPolicy(null, "off", null)

        /** For Java; in Kotlin `RetryPolicy(base) { … }`. */
        @JvmStatic
        @JvmOverloads
        public fun builder(base: RetryPolicy = DEFAULT): Builder = Builder(base, NativeCore)

        /**
         * A policy from JSON: field names in `snake_case`, durations in whole milliseconds. A missing field means its default, null means none.
         *
         * @throws PolicyException for an unknown field, a field that is there twice, an invalid value, or text that is no JSON object
         */
        @JvmStatic
        public fun fromJson(json: String): RetryPolicy = compile(NativeCore, "default", json, null)

        /**
         * As [fromJson], for remote configuration. It ignores unknown fields and never throws. [json] starts from the defaults, not from [fallback]; the
         * fallback is used only if [json] is invalid. So a policy that replaces [PAYMENT] must itself say `"client_resends": "off"`.
         */
        @JvmStatic
        public fun fromJsonOr(
            json: String,
            fallback: RetryPolicy,
        ): ForgivenPolicy = forgive(NativeCore, json, fallback)

        private fun preset(
            name: String,
            compiled: CompiledPolicy,
        ): RetryPolicy = RetryPolicy(compiled, Origin(name, emptyMap()))

        /** Without the library, or if that is at fault: a policy that lets requests pass. */
        private fun compile(
            core: Core,
            preset: String,
            json: String,
            origin: Origin?,
        ): RetryPolicy =
            try {
                RetryPolicy(core.compilePolicy(preset, json), origin)
            } catch (refused: PolicyProblem.Invalid) {
                throw PolicyException(refused.field, refused.value, refused.rule)
            } catch (thrown: Throwable) {
                if (thrown is VirtualMachineError) throw thrown
                RetryPolicy(null, "off: the native library cannot be used", origin)
            }

        internal fun forgive(
            core: Core,
            json: String,
            fallback: RetryPolicy,
        ): ForgivenPolicy =
            try {
                val forgiven = core.policyFromJsonOr(json, (fallback.compiled ?: CompiledPresets.DEFAULT).bytes)
                val field = forgiven.field
                if (field == null) {
                    ForgivenPolicy(RetryPolicy(forgiven.policy, null), forgiven.ignored, null)
                } else {
                    val problem = PolicyException(field, forgiven.value.orEmpty(), forgiven.rule.orEmpty())
                    ForgivenPolicy(fallback, forgiven.ignored, problem)
                }
            } catch (thrown: Throwable) {
                if (thrown is VirtualMachineError) throw thrown
                ForgivenPolicy(fallback, emptyList(), null)
            }
    }
}

/** Builds a policy over [base]; see [RetryPolicy.Builder]. */
@JvmSynthetic
public fun RetryPolicy(
    base: RetryPolicy = RetryPolicy.DEFAULT,
    configure: RetryPolicy.Builder.() -> Unit,
): RetryPolicy = RetryPolicy.builder(base).apply(configure).build()
