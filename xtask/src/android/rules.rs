//! `android rules`: the AAR's keep rules, proved with ProGuard and with R8. A small program is shrunk with them and must run; without any one of them it
//! must not run under at least one of the two.

use super::place;
use crate::{bindings, java, process, project};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const PROGUARD: &str = "com.guardsquare:proguard-base:7.8.2";
/// From Google's repository, which not everybody reaches.
const R8: &str = "com.android.tools:r8:8.13.19";
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program itself needs kept, and what a desktop's JNA mentions; not part of what is proved.
const FRAME: &str = "\
-keep class Shrunk { public static void main(java.lang.String[]); }
-dontwarn **
";

/// The program: what an app does before its first request.
const PROGRAM: &str = "\
public final class Shrunk {
    public static void main(String[] arguments) {
        dev.comeback.Comeback.builder().build().selfCheck();
        dev.comeback.ManualConnectivity network = new dev.comeback.ManualConnectivity();
        network.available();
        if (network.getSnapshot().getState() != dev.comeback.NetworkState.ONLINE) throw new AssertionError();
        System.out.println(\"it runs\");
        System.exit(0);
    }
}
";

enum Shrinker {
    ProGuard,
    R8,
}

pub fn run() -> Result<()> {
    let scratch = place().join("rules");
    fs::create_dir_all(&scratch)
        .with_context(|| format!("{} cannot be made", scratch.display()))?;
    let program = gather(&scratch)?;
    let rules =
        fs::read_to_string(project::root().join("android/comeback-android/consumer-rules.pro"))?;
    let keeping: Vec<&str> = rules
        .lines()
        .filter(|line| line.starts_with("-keep"))
        .collect();
    let mut needed = prove(
        &Shrunk::by(Shrinker::ProGuard, &scratch, &program)?,
        &rules,
        &keeping,
    )?;
    match Shrunk::by(Shrinker::R8, &scratch, &program) {
        Ok(shrunk) => needed.extend(prove(&shrunk, &rules, &keeping)?),
        Err(error) => println!("not shown with R8, which could not be fetched: {error:#}"),
    }
    for rule in keeping {
        ensure!(
            needed.contains(&rule),
            "the program runs without `{rule}`: it is not needed, or the program does not show for what"
        );
    }
    Ok(())
}

/// That the program runs with the rules and not without them. Gives the rules without any one of which it does not.
fn prove<'a>(shrunk: &Shrunk, rules: &str, keeping: &[&'a str]) -> Result<Vec<&'a str>> {
    let name = match shrunk.shrinker {
        Shrinker::ProGuard => "ProGuard",
        Shrinker::R8 => "R8",
    };
    ensure!(
        shrunk.runs(rules)?,
        "shrunk by {name} with the AAR's rules, the program does not run"
    );
    println!("{name}, with the AAR's rules: it runs");
    let mut needed = Vec::new();
    for rule in keeping {
        if shrunk.runs(&rules.replace(rule, ""))? {
            println!("{name}, without {rule}: it runs all the same");
        } else {
            println!("{name}, without {rule}: it does not run");
            needed.push(*rule);
        }
    }
    ensure!(
        !shrunk.runs("")?,
        "shrunk by {name} without any rule, the program runs: it proves nothing"
    );
    println!("{name}, without any rule: it does not run");
    Ok(needed)
}

/// The program and everything it needs, as jars.
fn gather(scratch: &Path) -> Result<Vec<PathBuf>> {
    bindings::CORE.make()?;
    let mut maven = java::maven()?;
    maven.args([
        "--quiet",
        "--no-transfer-progress",
        "process-classes",
        "--projects",
        "comeback-core",
        "--also-make",
    ]);
    process::run(&mut maven)?;
    let kotlin = project::kotlin();
    let libraries = scratch.join("libraries");
    // What comeback-ffi brings is all there is.
    let mut maven = java::maven()?;
    maven.args([
        "--quiet",
        "--no-transfer-progress",
        "dependency:copy-dependencies",
        "-DincludeScope=runtime",
        "-f",
        "comeback-ffi/pom.xml",
    ]);
    process::run(maven.arg(format!("-DoutputDirectory={}", libraries.display())))?;
    let mut program = Vec::new();
    for module in ["comeback-core", "comeback-ffi"] {
        let jar = scratch.join(format!("{module}.jar"));
        pack(&kotlin.join(module).join("target/classes"), &jar)?;
        program.push(jar);
    }
    for entry in fs::read_dir(&libraries)? {
        program.push(entry?.path());
    }
    let source = scratch.join("Shrunk.java");
    fs::write(&source, PROGRAM)?;
    let classes = scratch.join("classes");
    process::run(
        java::tool("javac")
            .arg("-cp")
            .arg(path(&program))
            .arg("-d")
            .arg(&classes)
            .arg(&source),
    )?;
    let jar = scratch.join("program.jar");
    pack(&classes, &jar)?;
    program.push(jar);
    Ok(program)
}

/// R8 takes no folders.
fn pack(classes: &Path, jar: &Path) -> Result<()> {
    process::run(
        java::tool("jar")
            .args(["--create", "--no-manifest", "--file"])
            .arg(jar)
            .arg("-C")
            .arg(classes)
            .arg("."),
    )
}

/// A published program with what it needs itself, through a project of one dependency: what to put on the class path.
fn fetch(coordinates: &str, scratch: &Path) -> Result<String> {
    let parts: Vec<&str> = coordinates.split(':').collect();
    let [group, name, version] = parts[..] else {
        bail!("`{coordinates}` is no group:name:version");
    };
    let folder = scratch.join(name);
    fs::create_dir_all(&folder)?;
    let pom = folder.join("pom.xml");
    fs::write(
        &pom,
        format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>\
             <repositories><repository><id>google</id><url>https://maven.google.com</url></repository></repositories><dependencies><dependency>\
             <groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency></dependencies></project>"
        ),
    )?;
    let mut maven = java::maven()?;
    maven
        .args([
            "--quiet",
            "--no-transfer-progress",
            "dependency:copy-dependencies",
            "-f",
        ])
        .arg(&pom)
        .arg(format!("-DoutputDirectory={}", folder.display()));
    process::output(&mut maven)?;
    Ok(format!("{}/*", folder.display()))
}

fn path(jars: &[PathBuf]) -> String {
    let all: Vec<String> = jars.iter().map(|jar| jar.display().to_string()).collect();
    all.join(":")
}

/// The program and a shrinker for it.
struct Shrunk<'a> {
    shrinker: Shrinker,
    class_path: String,
    scratch: &'a Path,
    program: &'a [PathBuf],
}

impl<'a> Shrunk<'a> {
    fn by(shrinker: Shrinker, scratch: &'a Path, program: &'a [PathBuf]) -> Result<Self> {
        let coordinates = match shrinker {
            Shrinker::ProGuard => PROGUARD,
            Shrinker::R8 => R8,
        };
        Ok(Shrunk {
            shrinker,
            class_path: fetch(coordinates, scratch)?,
            scratch,
            program,
        })
    }

    /// Whether the program does what it should when it was shrunk with these rules.
    fn runs(&self, rules: &str) -> Result<bool> {
        let jar = self.scratch.join("shrunk.jar");
        match self.shrinker {
            Shrinker::ProGuard => self.with_proguard(rules, &jar)?,
            Shrinker::R8 => self.with_r8(rules, &jar)?,
        }
        runs(&jar)
    }

    fn with_proguard(&self, rules: &str, jar: &Path) -> Result<()> {
        let mut text = format!("{FRAME}-dontoptimize\n-dontnote **\n");
        for input in self.program {
            text += &format!(
                "-injars {}(!META-INF/versions/**,!module-info.class)\n",
                input.display()
            );
        }
        text += &format!("-outjars {}\n", jar.display());
        for module in ["base", "desktop", "logging"] {
            text += &format!(
                "-libraryjars <java.home>/jmods/java.{module}.jmod(!**.jar;!module-info.class)\n"
            );
        }
        let file = self.scratch.join("proguard.pro");
        fs::write(&file, text + rules)?;
        process::output(
            java::java()
                .arg("-cp")
                .arg(&self.class_path)
                .arg("proguard.ProGuard")
                .arg(format!("@{}", file.display())),
        )?;
        Ok(())
    }

    /// With all its optimisations, as an app's release build has them.
    fn with_r8(&self, rules: &str, jar: &Path) -> Result<()> {
        let file = self.scratch.join("r8.pro");
        fs::write(&file, format!("{FRAME}{rules}"))?;
        let mut r8 = java::java();
        r8.arg("-cp")
            .arg(&self.class_path)
            .args(["com.android.tools.r8.R8", "--classfile", "--release"])
            .arg("--lib")
            .arg(java::home()?)
            .arg("--output")
            .arg(jar)
            .arg("--pg-conf")
            .arg(&file)
            .args(self.program);
        // It warns of files that several jars have.
        let mut said = String::new();
        process::lines(&mut r8, |line| {
            said.push_str(line);
            said.push('\n');
        })
        .inspect_err(|_| eprint!("{said}"))
    }
}

/// Whether the program in `shrunk` does what it should. What cannot find its classes may also hang, hence the patience.
fn runs(shrunk: &Path) -> Result<bool> {
    let mut program = java::java()
        .arg("-cp")
        .arg(shrunk)
        .arg("Shrunk")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("java could not be started")?;
    let began = Instant::now();
    loop {
        if let Some(status) = program.try_wait()? {
            return Ok(status.success());
        }
        if began.elapsed() > PATIENCE {
            program.kill()?;
            program.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
