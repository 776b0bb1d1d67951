// The real core, watched: which thread asked it what, and it can be made to panic in Rust. Only reflection reaches it from this module.
package dev.comeback.okhttp

import dev.comeback.Comeback
import java.lang.reflect.InvocationTargetException
import java.lang.reflect.Method
import java.lang.reflect.Proxy
import java.util.concurrent.CopyOnWriteArrayList

/** [panicIn] names the questions at which Rust really panics. */
internal class WatchedCore(
    private vararg val panicIn: String,
) {
    private val asked = CopyOnWriteArrayList<Pair<Thread, String>>()

    fun askedBy(thread: Thread): List<String> = asked.filter { it.first === thread }.map { it.second }

    /** By any thread; loading the library is no question. */
    fun questions(): List<String> = asked.map { it.second }.filter { it != "load" }

    fun putInto(builder: Comeback.Builder) {
        val type = Class.forName("dev.comeback.internal.Core")
        val real = Class.forName("dev.comeback.internal.NativeCore").getField("INSTANCE").get(null)
        val watched =
            Proxy.newProxyInstance(
                type.classLoader,
                arrayOf(type),
            ) { _, method, arguments -> ask(real, method, arguments.orEmpty()) }
        builder.javaClass.getMethod("setCore\$comeback_core", type).invoke(builder, watched)
    }

    private fun ask(
        real: Any,
        method: Method,
        arguments: Array<out Any?>,
    ): Any? {
        asked += Thread.currentThread() to method.name
        if (method.name in panicIn) call { Class.forName("dev.comeback.ffi.ComebackKt").getMethod("provokePanic").invoke(null) }
        return call { method.invoke(real, *arguments) }
    }

    private fun call(action: () -> Any?): Any? =
        try {
            action()
        } catch (thrown: InvocationTargetException) {
            throw thrown.targetException
        }
}
