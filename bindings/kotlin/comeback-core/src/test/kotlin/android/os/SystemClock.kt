// A stand-in for Android's class: as in local unit tests it throws, until a test pretends to be a device.
package android.os

internal object SystemClock {
    private var nanos: Long? = null

    @JvmStatic
    @Suppress("unused") // by reflection
    fun elapsedRealtimeNanos(): Long = nanos ?: throw UnsupportedOperationException("Stub!")

    @JvmStatic
    @Suppress("unused") // by reflection
    fun pretend(nanos: Long) {
        this.nanos = nanos
    }
}
