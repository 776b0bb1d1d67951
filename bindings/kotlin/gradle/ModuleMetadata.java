// Writes what Gradle reads of a Maven module: `ARTIFACT-VERSION.module`, Gradle's module metadata 1.1, beside the jar and the POM.
//
// A POM has one list of dependencies for everybody. Gradle can choose, and here it has to: an Android app needs JNA as AAR, with Android's libraries, and
// none of the libraries for desktops that our jars carry; a JVM needs both jars. And where Maven must name the JVM's half of a multiplatform library
// (`okhttp-jvm`), Gradle is told the library's own name and picks the half itself, so that it never has the same classes twice.
//
// Arguments: the module's pom.xml, the parent's, and the file to write. `cargo xtask check metadata` reads the result.
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

class ModuleMetadata {
    /** Whose `-jvm` artefacts are halves of multiplatform libraries. */
    private static final Set<String> MULTIPLATFORM = Set.of("com.squareup.okhttp3", "io.ktor", "org.jetbrains.kotlinx");

    private final Element module;
    private final Map<String, String> properties = new LinkedHashMap<>();
    private final Map<String, String> managed = new LinkedHashMap<>();
    private final List<Element> dependencies = new ArrayList<>();

    private ModuleMetadata(Element module, Element parent) {
        this.module = module;
        for (Element property : children(child(parent, "properties"))) properties.put(property.getTagName(), property.getTextContent().trim());
        properties.put("project.version", text(parent, "version"));
        for (Element entry : children(child(child(parent, "dependencyManagement"), "dependencies"))) {
            managed.put(text(entry, "groupId") + ":" + text(entry, "artifactId"), text(entry, "version"));
        }
        dependencies.addAll(children(child(parent, "dependencies")));
        dependencies.addAll(children(child(module, "dependencies")));
    }

    public static void main(String[] arguments) throws Exception {
        var metadata = new ModuleMetadata(read(arguments[0]), read(arguments[1]));
        Files.createDirectories(Path.of(arguments[2]).getParent());
        Files.writeString(Path.of(arguments[2]), metadata.json());
    }

    private String json() {
        String artifact = text(module, "artifactId");
        String version = properties.get("project.version");
        var variants = new ArrayList<String>();
        for (String environment : List.of("standard-jvm", "android")) {
            boolean isAndroid = environment.equals("android");
            // The bindings' jars carry libraries for desktops; beside them lies one without.
            String file = artifact + "-" + version + (isAndroid && artifact.endsWith("-ffi") ? "-android" : "") + ".jar";
            for (String usage : List.of("api", "runtime")) {
                variants.add(
                    """
                        {
                          "name": "%s-elements",
                          "attributes": {
                            "org.gradle.category": "library",
                            "org.gradle.dependency.bundling": "external",
                            "org.gradle.jvm.environment": "%s",
                            "org.gradle.jvm.version": 8,
                            "org.gradle.libraryelements": "jar",
                            "org.gradle.usage": "java-%s"
                          },
                          "dependencies": [
                    %s
                          ],
                          "files": [
                            { "name": "%s", "url": "%s" }
                          ]
                        }""".formatted((isAndroid ? "android-" : "jvm-") + usage, environment, usage, dependencies(usage, isAndroid), file, file));
            }
        }
        return """
            {
              "formatVersion": "1.1",
              "component": {
                "group": "dev.comeback",
                "module": "%s",
                "version": "%s"
              },
              "createdBy": { "maven": { } },
              "variants": [
            %s
              ]
            }
            """.formatted(artifact, version, String.join(",\n", variants));
    }

    private String dependencies(String usage, boolean isAndroid) {
        var all = new ArrayList<String>();
        for (Element dependency : dependencies) {
            String scope = text(dependency, "scope");
            boolean isWanted = scope == null || scope.equals("compile") || (scope.equals("runtime") && usage.equals("runtime"));
            if (!isWanted || "true".equals(text(dependency, "optional"))) continue;
            String group = resolved(text(dependency, "groupId"));
            String artifact = text(dependency, "artifactId");
            if (child(dependency, "exclusions") != null) {
                throw new IllegalStateException(artifact + " has exclusions, which are not written here yet: an app would get what is excluded");
            }
            String version = version(dependency, group, artifact);
            if (MULTIPLATFORM.contains(group) && artifact.endsWith("-jvm")) artifact = artifact.substring(0, artifact.length() - "-jvm".length());
            String selector = "";
            if (isAndroid && group.equals("net.java.dev.jna")) {
                selector = ", \"thirdPartyCompatibility\": { \"artifactSelector\": { \"name\": \"%s\", \"type\": \"aar\", \"extension\": \"aar\" } }".formatted(artifact);
            }
            all.add(
                "        { \"group\": \"%s\", \"module\": \"%s\", \"version\": { \"requires\": \"%s\" }%s }".formatted(group, artifact, version, selector));
        }
        return String.join(",\n", all);
    }

    private String version(Element dependency, String group, String artifact) {
        String version = text(dependency, "version");
        if (version == null) version = managed.get(group + ":" + artifact);
        // What a list of versions (a BOM) manages: its own version is that of what it lists.
        if (version == null && group.equals("org.jetbrains.kotlin")) version = "${kotlin.version}";
        if (version == null && artifact.startsWith("kotlinx-coroutines-")) version = "${coroutines.version}";
        if (version == null) throw new IllegalStateException("no version is known of " + group + ":" + artifact);
        return resolved(version);
    }

    private String resolved(String text) {
        Matcher matcher = Pattern.compile("\\$\\{([^}]+)}").matcher(text);
        return matcher.replaceAll(found -> {
            String value = properties.get(found.group(1));
            if (value == null) throw new IllegalStateException("the parent has no property " + found.group(1));
            return Matcher.quoteReplacement(value);
        });
    }

    private static Element read(String file) throws Exception {
        return DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(new File(file)).getDocumentElement();
    }

    private static List<Element> children(Element of) {
        var all = new ArrayList<Element>();
        if (of == null) return all;
        for (Node node = of.getFirstChild(); node != null; node = node.getNextSibling()) {
            if (node instanceof Element element) all.add(element);
        }
        return all;
    }

    private static Element child(Element of, String name) {
        return children(of).stream().filter(element -> element.getTagName().equals(name)).findFirst().orElse(null);
    }

    private static String text(Element of, String name) {
        Element element = child(of, name);
        return element == null ? null : element.getTextContent().trim();
    }
}
