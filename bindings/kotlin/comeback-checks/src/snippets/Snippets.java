// Writes each Kotlin block of README.md and docs/*.md as a test source, so that the build fails when one does not compile.
//
// A block that begins with an import is a file of its own. Any other is the body of a function that knows the names of Names.kt. Each line of
// a block has the same number in its source as in its page: README.md.kt:42 in an error is line 42 of README.md, give or take nothing.
//
// Arguments: the repository, where the sources go, and `all` or `without-android`, which leaves out what imports Android's classes.
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

class Snippets {
    private static final String IMPORTS =
        String.join("; ", Stream.of(
            "dev.comeback.*", "dev.comeback.client.*", "dev.comeback.coroutines.*", "dev.comeback.ktor.*",
            "dev.comeback.okhttp.*", "dev.comeback.testing.*", "io.ktor.client.HttpClient", "io.ktor.client.engine.okhttp.OkHttp",
            "io.ktor.client.plugins.HttpTimeout", "io.ktor.client.request.*", "io.ktor.client.statement.*", "io.ktor.http.isSuccess", "java.io.IOException",
            "kotlin.time.Duration.Companion.milliseconds", "kotlin.time.Duration.Companion.minutes", "kotlin.time.Duration.Companion.seconds",
            "kotlinx.coroutines.test.runTest", "okhttp3.*", "okhttp3.RequestBody.Companion.toRequestBody", "retrofit2.Retrofit")
            .map(name -> "import " + name).toList());

    private static boolean withAndroid;

    public static void main(String[] arguments) throws IOException {
        Path root = Path.of(arguments[0]);
        Path out = Path.of(arguments[1]);
        withAndroid = arguments[2].equals("all");
        Files.createDirectories(out);
        try (Stream<Path> old = Files.list(out)) {
            for (Path file : old.toList()) Files.delete(file);
        }
        int count = write(root.resolve("README.md"), out);
        try (Stream<Path> pages = Files.list(root.resolve("docs"))) {
            for (Path page : pages.filter(file -> file.toString().endsWith(".md")).sorted().toList()) count += write(page, out);
        }
        if (count == 0) throw new IllegalStateException("no Kotlin block was found below " + root);
    }

    private static int write(Path page, Path out) throws IOException {
        List<String> lines = Files.readAllLines(page);
        int count = 0;
        for (int first = 0; first < lines.size(); first++) {
            if (!lines.get(first).equals("```kotlin")) continue;
            int end = first + 1 + lines.subList(first + 1, lines.size()).indexOf("```");
            List<String> block = lines.subList(first + 1, end);
            if (withAndroid || block.stream().noneMatch(line -> line.startsWith("import android."))) {
                write(page.getFileName().toString(), first + 1, block, out);
                count++;
            }
            first = end;
        }
        return count;
    }

    /** {@code line} is the number of the block's fence, from 1. */
    private static void write(String page, int line, List<String> block, Path out) throws IOException {
        String name = page.replaceAll("\\W", "_") + "_" + line;
        String head = "@file:Suppress(\"UNUSED\", \"UNUSED_VARIABLE\", \"UNUSED_EXPRESSION\") package dev.comeback.snippets." + name;
        boolean isFile = block.get(0).startsWith("import ");
        if (!isFile) head += "; " + IMPORTS + "; import dev.comeback.snippets.Names; suspend fun Names.shown() {";
        String source = head + "\n".repeat(line) + String.join("\n", block) + "\n" + (isFile ? "" : "}\n");
        Files.writeString(out.resolve(page + "." + line + ".kt"), source);
    }
}
