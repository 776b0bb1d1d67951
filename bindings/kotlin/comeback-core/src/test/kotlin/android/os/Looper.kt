// A stand-in for Android's class: as in local unit tests it throws, until a test pretends to be a device.
package android.os

internal class Looper(
    private val itsThread: Thread,
) {
    @Suppress("unused") // by reflection
    fun getThread(): Thread = itsThread

    internal companion object {
        private var main: Looper? = null

        @JvmStatic
        @Suppress("unused") // by reflection
        fun getMainLooper(): Looper = main ?: throw UnsupportedOperationException("Stub!")

        @JvmStatic
        @Suppress("unused") // by reflection
        fun pretend(mainThread: Thread) {
            main = Looper(mainThread)
        }
    }
}
