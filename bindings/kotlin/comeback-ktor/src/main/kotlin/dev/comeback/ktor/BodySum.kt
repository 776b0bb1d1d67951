// Checks that a body that is sent again is the one that was sent before: its bytes are counted and summed.
package dev.comeback.ktor

import java.io.IOException
import java.util.zip.CRC32

/** What the writings of one body have in common so far. */
internal class BodySum {
    private var length = 0L
    private var sum = 0L
    private var isWhole = false

    /** A writing begins. */
    fun writing(): Writing = Writing()

    /** One writing. It must be the same as every earlier one, as far as that one came. */
    inner class Writing {
        private val crc = CRC32()
        private var count = 0L

        /** @throws BodyChangedException if this is not what was written before */
        fun add(
            bytes: ByteArray,
            from: Int,
            to: Int,
        ): Unit =
            synchronized(this@BodySum) {
                var at = from
                if (count < length) {
                    val known = minOf((to - from).toLong(), length - count).toInt()
                    crc.update(bytes, from, known)
                    count += known
                    at += known
                    if (count == length && crc.value != sum) throw BodyChangedException()
                }
                if (at == to) return
                if (isWhole) throw BodyChangedException()
                crc.update(bytes, at, to - at)
                count += to - at
                length = count
                sum = crc.value
            }

        /** @throws BodyChangedException if more was written before */
        fun end(): Unit =
            synchronized(this@BodySum) {
                if (count < length) throw BodyChangedException()
                isWhole = true
            }
    }
}

/** Ends an attempt whose body differs from what the attempt before wrote. */
internal class BodyChangedException : IOException("the request's body is not the same as the one that was sent before")
