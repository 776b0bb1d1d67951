// Makes the chance of libraries that take no seed repeatable.
package dev.comeback.arena

import java.util.Random
import java.util.SplittableRandom
import java.util.concurrent.ThreadLocalRandom

/**
 * Ktor and Arrow draw their jitter from Kotlin's default random numbers, which on a JVM are those of this thread; resilience4j and Failsafe draw from
 * `Math.random()`. Neither can be given a seed, so it is put where the JDK keeps it. That is why the program opens `java.lang` to itself (the jar's
 * manifest, the tests' argLine).
 */
internal object Chance {
    fun seed(seed: Long) {
        val random = SplittableRandom(seed)
        ThreadLocalRandom.current() // initialises the thread's state, which would else be done later, over ours
        val field = Thread::class.java.getDeclaredField("threadLocalRandomSeed")
        field.isAccessible = true
        field.setLong(Thread.currentThread(), random.nextLong())
        Math.random()
        val holder = Class.forName("java.lang.Math\$RandomNumberGeneratorHolder").getDeclaredField("randomNumberGenerator")
        holder.isAccessible = true
        (holder.get(null) as Random).setSeed(random.nextLong())
    }
}
