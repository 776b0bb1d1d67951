// The benchmarks' entrance: `cargo xtask bench-kotlin [NAME …]`.
package dev.comeback.bench

import kotlin.system.exitProcess

private class Benchmark(
    val name: String,
    val what: String,
    val run: () -> Unit,
)

private val BENCHMARKS =
    listOf(
        Benchmark("decision", "one question to the core from Kotlin, and where its time and bytes go", ::measureDecision),
        Benchmark("cold", "the first decision of a fresh process, and what start-up costs its thread", ::measureColdStart),
        Benchmark("edge", "from the network's return to the next attempt, with 1 and 200 waiting threads", ::measureEdge),
        Benchmark("edge-coroutines", "the same with 1, 100 and 10,000 waiting coroutines", ::measureEdgeOfCoroutines),
        Benchmark(
            "success",
            "a call that succeeds at once: OkHttp without us, with an interceptor that only proceeds, with ours, with others",
            ::measureSuccess,
        ),
        Benchmark(
            "limits",
            "a limit that is not reached: the clock of all calls, okio's, the JDK's scheduler; 1 and 8 threads",
            ::measureLimits,
        ),
        Benchmark("success-loopback", "the same over loopback", ::measureLoopbackSuccess),
        Benchmark("success-ktor", "the same through Ktor: without us, with its HttpRequestRetry, with ours", ::measureKtorSuccess),
        Benchmark(
            "waiting",
            "10,000 calls of the factory waiting at once: threads, memory, and how soon an edge wakes them",
            ::measureWaiting,
        ),
        Benchmark("memory", "what a waiting call keeps: interceptor, factory, coroutine", ::measureWaitingMemory),
    )

fun main(arguments: Array<String>) {
    val unknown = arguments.filter { name -> BENCHMARKS.none { it.name == name } }
    if (unknown.isNotEmpty()) {
        val names = BENCHMARKS.joinToString("\n") { "  %-17s %s".format(it.name, it.what) }
        val help = "Usage: cargo xtask bench-kotlin [NAME …]   (all, one after the other, without a name)\n\n$names"
        if (unknown == listOf("--help")) {
            println(help)
            return
        }
        System.err.println("There is no benchmark ${unknown.joinToString()}.\n\n$help")
        exitProcess(2)
    }
    println(machine())
    for (benchmark in BENCHMARKS) {
        if (arguments.isEmpty() || benchmark.name in arguments) {
            println("\n## ${benchmark.name}: ${benchmark.what}\n")
            benchmark.run()
        }
    }
    // OkHttp's own threads linger for a minute.
    exitProcess(0)
}

private fun machine(): String {
    val java = "${System.getProperty("java.vm.name")} ${System.getProperty("java.version")}"
    return "$java, ${System.getProperty(
        "os.name",
    )} ${System.getProperty("os.arch")}, ${Runtime.getRuntime().availableProcessors()} processors"
}
