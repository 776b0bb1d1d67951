// Where time and bytes of a question go, by sampling, so that nothing but comeback-core has to know the generated binding.
package dev.comeback.bench

import jdk.jfr.Recording
import jdk.jfr.consumer.RecordedEvent
import jdk.jfr.consumer.RecordedFrame
import jdk.jfr.consumer.RecordingFile
import java.nio.file.Files
import java.time.Duration

private enum class Layer(
    val text: String,
) {
    FACADE("façade: CallSession, events, report"),
    CONVERSION("conversion: records to bytes and back"),
    JNA("JNA's Java: status and buffer structures"),
    NATIVE("native code: JNA's dispatch and Rust"),
    ;

    companion object {
        /** Innermost frame first. */
        fun of(frames: List<RecordedFrame>): Layer? =
            frames.withIndex().firstNotNullOfOrNull { (depth, frame) ->
                val type = frame.method.type.name
                when {
                    depth == 0 && isNative(frame) && (type.startsWith("com.sun.jna.") || type.startsWith("dev.comeback.")) -> NATIVE
                    type.startsWith("com.sun.jna.") -> JNA
                    type.startsWith("dev.comeback.ffi.") -> CONVERSION
                    type.startsWith("dev.comeback.") -> FACADE
                    else -> null
                }
            }

        private fun isNative(frame: RecordedFrame) = frame.type == "Native"
    }
}

/** Runs [work] under the recorder, and prints what the calls of one method spend in each layer. */
internal fun printLayers(
    type: String,
    method: String,
    work: () -> Unit,
) {
    val time = HashMap<Layer, Double>()
    val bytes = HashMap<Layer, Double>()
    var allocations = 0
    for (event in recorded(work)) {
        val frames = event.stackTrace?.frames.orEmpty()
        if (frames.none { it.method.type.name == type && it.method.name == method }) continue
        val layer = Layer.of(frames) ?: continue
        if (event.eventType.name == "jdk.ObjectAllocationSample") {
            bytes.merge(layer, event.getLong("weight").toDouble(), Double::plus)
            allocations++
        } else {
            time.merge(layer, 1.0, Double::plus)
        }
    }
    val table = Table("of a decision, in", "time", "bytes")
    for (layer in Layer.entries) table.row(layer.text, time.share(layer), bytes.share(layer))
    table.print()
    println("(${time.values.sum().toInt()} samples of time, $allocations of bytes)")
}

private fun Map<Layer, Double>.share(layer: Layer): String = "%.0f %%".format(100 * getOrDefault(layer, 0.0) / values.sum())

private fun recorded(work: () -> Unit): List<RecordedEvent> {
    val file = Files.createTempFile("comeback-bench", ".jfr")
    try {
        Recording().use { recording ->
            recording.enable("jdk.ExecutionSample").withPeriod(Duration.ofMillis(1))
            recording.enable("jdk.NativeMethodSample").withPeriod(Duration.ofMillis(1))
            recording.enable("jdk.ObjectAllocationSample").with("throttle", "off")
            recording.start()
            work()
            recording.stop()
            recording.dump(file)
        }
        return RecordingFile.readAllEvents(file)
    } finally {
        Files.delete(file)
    }
}
