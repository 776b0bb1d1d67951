//! `android rules`: the AAR's keep rules, proved. A small program is shrunk with them and must run; without any one of them it must not.

use super::place;
use crate::{bindings, java, process, project};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROGUARD: &str = "com.guardsquare:proguard-base:7.8.2";
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program itself needs kept, and what a desktop's JNA mentions; not part of what is proved.
const FRAME: &str = "\
-dontoptimize
-keep class Shrunk { public static void main(java.lang.String[]); }
-dontwarn **
-dontnote **
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

pub fn run() -> Result<()> {
    let scratch = place().join("rules");
    fs::create_dir_all(&scratch)
        .with_context(|| format!("{} cannot be made", scratch.display()))?;
    let jars = gather(&scratch)?;
    let rules =
        fs::read_to_string(project::root().join("android/comeback-android/consumer-rules.pro"))?;
    ensure!(
        runs(&shrink(&scratch, &jars, &rules)?)?,
        "shrunk with the AAR's rules, the program does not run"
    );
    println!("with the AAR's rules: it runs");
    for rule in rules.lines().filter(|line| line.starts_with("-keep")) {
        let without = rules.replace(rule, "");
        ensure!(
            !runs(&shrink(&scratch, &jars, &without)?)?,
            "the program runs without `{rule}`: it is not needed, or the program does not show for what"
        );
        println!("needed: {rule}");
    }
    ensure!(
        !runs(&shrink(&scratch, &jars, "")?)?,
        "the program runs without any rule: it proves nothing"
    );
    println!("without any rule: it does not run");
    Ok(())
}

/// The program and everything it needs, ProGuard apart.
struct Jars {
    program: Vec<PathBuf>,
    proguard: String,
}

fn gather(scratch: &Path) -> Result<Jars> {
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
    let ours = |module: &str| kotlin.join(module).join("target/classes");
    let libraries = scratch.join("libraries");
    let proguard = scratch.join("proguard");
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
    // ProGuard with what it needs itself, through a project of one dependency.
    let (group, rest) = PROGUARD.split_once(':').unwrap_or_default();
    let (name, version) = rest.split_once(':').unwrap_or_default();
    let pom = scratch.join("pom.xml");
    fs::write(
        &pom,
        format!(
            "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><dependencies><dependency>\
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
        .arg(&pom);
    process::run(maven.arg(format!("-DoutputDirectory={}", proguard.display())))?;

    let mut program = vec![ours("comeback-core"), ours("comeback-ffi")];
    for entry in fs::read_dir(&libraries)? {
        program.push(entry?.path());
    }
    let source = scratch.join("Shrunk.java");
    fs::write(&source, PROGRAM)?;
    let classes = scratch.join("classes");
    process::run(
        tool("javac")
            .arg("-cp")
            .arg(path(&program))
            .arg("-d")
            .arg(&classes)
            .arg(&source),
    )?;
    program.push(classes);
    Ok(Jars {
        program,
        proguard: format!("{}/*", proguard.display()),
    })
}

fn tool(name: &str) -> Command {
    match std::env::var_os("JAVA_HOME") {
        Some(home) => Command::new(PathBuf::from(home).join("bin").join(name)),
        None => Command::new(name),
    }
}

fn path(jars: &[PathBuf]) -> String {
    let all: Vec<String> = jars.iter().map(|jar| jar.display().to_string()).collect();
    all.join(":")
}

fn shrink(scratch: &Path, jars: &Jars, rules: &str) -> Result<PathBuf> {
    let shrunk = scratch.join("shrunk.jar");
    let mut text = String::from(FRAME);
    for jar in &jars.program {
        text += &format!(
            "-injars {}(!META-INF/versions/**,!module-info.class)\n",
            jar.display()
        );
    }
    text += &format!(
        "-outjars {}\n-libraryjars <java.home>/jmods/java.base.jmod(!**.jar;!module-info.class)\n",
        shrunk.display()
    );
    text += "-libraryjars <java.home>/jmods/java.desktop.jmod(!**.jar;!module-info.class)\n";
    text += "-libraryjars <java.home>/jmods/java.logging.jmod(!**.jar;!module-info.class)\n";
    text += rules;
    let file = scratch.join("rules.pro");
    fs::write(&file, text)?;
    process::output(
        java::java()
            .arg("-cp")
            .arg(&jars.proguard)
            .arg("proguard.ProGuard")
            .arg(format!("@{}", file.display())),
    )?;
    Ok(shrunk)
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
