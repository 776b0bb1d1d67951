//! `cargo xtask check metadata`: a small program of our own that reads the Gradle module metadata of the Maven artefacts as Gradle would for two apps,
//! one on Android and one on a JVM, and looks at what each gets. It is not Gradle: it chooses a variant by the attributes that differ here, and follows
//! dependencies only into modules of ours.

use crate::steps::Step;
use crate::{java, process, project};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// What an app can depend on. The other modules that are published come with these.
const ENTRIES: [&str; 5] = [
    "comeback-okhttp",
    "comeback-ktor",
    "comeback-coroutines",
    "comeback-client",
    "comeback-testing",
];
const JNA: &str = "net.java.dev.jna:jna";
/// Gradle reads the metadata only of what says so in its POM.
const MARKER: &str = "do_not_remove: published-with-gradle-metadata";

pub fn check(step: &mut Step<'_>) -> Result<()> {
    // The client's Kotlin, and the core with its library as a jar has it.
    step.run(process::xtask().args(["bindings", "tests"]))?;
    step.run(process::xtask().args(["bindings", "library"]))?;
    let mut maven = java::maven()?;
    let entries: Vec<String> = ENTRIES.iter().map(|name| format!(":{name}")).collect();
    step.run(maven.args([
        "--no-transfer-progress",
        "package",
        "--projects",
        &entries.join(","),
        "--also-make",
        "-Dmaven.test.skip=true",
        "-Dwithout-android",
    ]))?;
    for entry in ENTRIES {
        for environment in ["android", "standard-jvm"] {
            for usage in ["java-api", "java-runtime"] {
                let got = Got::by(entry, environment, usage)
                    .with_context(|| format!("{entry}, {environment}, {usage}"))?;
                got.check(environment)
                    .with_context(|| format!("{entry}, {environment}, {usage}"))?;
                step.say(&format!(
                    "{entry}, {environment}, {usage}: {}; {}",
                    got.files.iter().cloned().collect::<Vec<_>>().join(", "),
                    got.others.keys().cloned().collect::<Vec<_>>().join(", ")
                ));
            }
        }
    }
    Ok(())
}

/// What an app gets that names one module.
#[derive(Default)]
struct Got {
    /// Of ours, by name.
    files: BTreeSet<String>,
    /// What lies in them.
    content: BTreeSet<String>,
    /// Of others: version, and what is taken of it unless it is the jar or up to its own metadata.
    others: BTreeMap<String, (String, Option<String>)>,
}

impl Got {
    fn by(entry: &str, environment: &str, usage: &str) -> Result<Got> {
        let mut got = Got::default();
        let (mut open, mut seen) = (vec![entry.to_owned()], BTreeSet::new());
        while let Some(module) = open.pop() {
            if !seen.insert(module.clone()) {
                continue;
            }
            let target = project::kotlin().join(&module).join("target");
            let pom = fs::read_to_string(project::kotlin().join(&module).join("pom.xml"))?;
            ensure!(
                pom.contains(MARKER),
                "the POM of {module} lacks the line by which Gradle knows of the metadata: {MARKER}"
            );
            let metadata = read(&module, &target)?;
            let variant = chosen(&metadata, environment, usage)?;
            for file in list(variant, "files") {
                let name = text(file, "url")?;
                got.content.extend(entries(target.join(name))?);
                got.files.insert(name.to_owned());
            }
            for dependency in list(variant, "dependencies") {
                let (group, name) = (text(dependency, "group")?, text(dependency, "module")?);
                if group == "dev.comeback" {
                    open.push(name.to_owned());
                    continue;
                }
                let version = dependency.pointer("/version/requires");
                let version = version.and_then(Value::as_str).context("no version")?;
                let extension = dependency
                    .pointer("/thirdPartyCompatibility/artifactSelector/extension")
                    .and_then(Value::as_str);
                let other = (version.to_owned(), extension.map(String::from));
                got.others.insert(format!("{group}:{name}"), other);
            }
        }
        Ok(got)
    }

    fn check(&self, environment: &str) -> Result<()> {
        let halves: Vec<&String> = self
            .others
            .keys()
            .filter(|name| name.ends_with("-jvm"))
            .collect();
        ensure!(
            halves.is_empty(),
            "{halves:?}: the JVM's half of a multiplatform library; Gradle must hear the library's own name, and choose"
        );
        let is_native = |name: &&String| {
            [".so", ".dylib", ".dll"]
                .iter()
                .any(|ending| name.ends_with(ending))
        };
        let natives: Vec<&String> = self.content.iter().filter(is_native).collect();
        let (_, jna) = self.others.get(JNA).context("JNA is missing")?;
        if environment == "android" {
            ensure!(natives.is_empty(), "libraries for desktops: {natives:?}");
            ensure!(
                jna.as_deref() == Some("aar"),
                "JNA's {jna:?}, whose libraries are for desktops; on Android it must be the AAR"
            );
        } else {
            ensure!(
                natives.iter().any(|name| name.contains("comeback.")),
                "the core's native library is in no jar"
            );
            ensure!(jna.is_none(), "JNA's {jna:?}; on a JVM it must be the jar");
        }
        Ok(())
    }
}

fn read(module: &str, target: &std::path::Path) -> Result<Value> {
    let files = fs::read_dir(target).with_context(|| format!("{module} was not built"))?;
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|ending| ending == "module") {
            return serde_json::from_str(&fs::read_to_string(&path)?)
                .with_context(|| format!("{} is no JSON", path.display()));
        }
    }
    bail!("{module} has no module metadata: its POM must set gradle-metadata.skip to false")
}

/// The variant with these two attributes, which are the ones that differ; there must be one.
fn chosen<'a>(metadata: &'a Value, environment: &str, usage: &str) -> Result<&'a Value> {
    let has = |variant: &&Value, name: &str, value: &str| {
        variant["attributes"][name].as_str() == Some(value)
    };
    let fitting: Vec<&Value> = list(metadata, "variants")
        .filter(|variant| has(variant, "org.gradle.jvm.environment", environment))
        .filter(|variant| has(variant, "org.gradle.usage", usage))
        .collect();
    match fitting[..] {
        [variant] => Ok(variant),
        _ => bail!("{} variants fit, not one", fitting.len()),
    }
}

fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of[name].as_array().into_iter().flatten()
}

fn text<'a>(of: &'a Value, name: &str) -> Result<&'a str> {
    of[name]
        .as_str()
        .with_context(|| format!("no {name} in {of}"))
}

fn entries(jar: PathBuf) -> Result<Vec<String>> {
    ensure!(
        jar.is_file(),
        "{} is named in the metadata and was not built",
        jar.display()
    );
    let listed = process::output(java::tool("jar").arg("--list").arg("--file").arg(&jar))?;
    Ok(listed.lines().map(String::from).collect())
}
