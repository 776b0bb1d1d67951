//! `cargo xtask test [rust|kotlin|android]`: the tests, and nothing else. Lints, documentation and sizes are `cargo xtask check`.

use crate::bindings::{self, ALL_BUT_XTASK};
use crate::steps::Steps;
use crate::{java, process};
use anyhow::{Result, bail};
use lexopt::{Arg, Parser};
use std::process::Command;

const HELP: &str = "\
Usage: cargo xtask test [rust|kotlin|android]     rust and kotlin, unless named

  rust      every Rust test of the workspace, with every feature
  kotlin    the tests of all Maven modules but Android's
  android   Android's modules in Robolectric, which fetches some 465 MB the first time

One line a step, with its time; failures in full. The first line names the file that has all output. The first run compiles everything: minutes.
One test alone: `cargo test --test policy`; `mvn -pl comeback-okhttp -am test -Dtest=RetryAfterTest -Dsurefire.failIfNoSpecifiedTests=false`.";

pub fn run(mut arguments: Parser) -> Result<()> {
    let mut parts: &[fn(&mut Steps) -> Result<()>] = &[rust, kotlin];
    if let Some(argument) = arguments.next()? {
        parts = match argument {
            Arg::Value(part) if part == "rust" => &[rust],
            Arg::Value(part) if part == "kotlin" => &[kotlin],
            Arg::Value(part) if part == "android" => &[android],
            Arg::Long("help") | Arg::Short('h') => {
                println!("{HELP}");
                return Ok(());
            }
            Arg::Value(part) => bail!(
                "there is no part `{}`; there are `rust`, `kotlin` and `android`",
                part.to_string_lossy()
            ),
            other => return Err(other.unexpected().into()),
        };
    }
    crate::nothing_more(&mut arguments)?;
    if parts != [rust as fn(&mut Steps) -> Result<()>] {
        // Said at once, not after minutes of Rust.
        java::maven()?;
    }
    let mut steps = Steps::begin("test")?;
    for part in parts {
        // The steps remember what failed; the other half is tested all the same.
        let _ = part(&mut steps);
    }
    steps.end()
}

/// Every Rust test of the workspace, in the dev profile and with every feature.
pub fn rust(steps: &mut Steps) -> Result<()> {
    steps.run("Rust: build", &mut bindings::build_for_tests())?;
    steps.step("Rust: tests", |step| {
        // All of them, whichever fails first.
        let all = step.run(
            process::cargo("test")
                .args(ALL_BUT_XTASK)
                .arg("--no-fail-fast"),
        );
        step.run(process::cargo("test").args(["--package", "xtask"]))?;
        all
    })
}

/// Every Kotlin test that runs on a plain JVM.
pub fn kotlin(steps: &mut Steps) -> Result<()> {
    generate(steps)?;
    // The benchmarks have no tests; `cargo xtask check bench` compiles them.
    steps.run(
        "Kotlin: build and tests",
        maven()?.args(["--projects", "!:comeback-bench", "-Dwithout-android"]),
    )
}

/// The Android monitor and the sample in Robolectric, which brings 465 MB of Android the first time.
pub fn android(steps: &mut Steps) -> Result<()> {
    generate(steps)?;
    steps.run(
        "Android in Robolectric: build and tests",
        maven()?.args([
            "--projects",
            ":comeback-android,:comeback-sample",
            "--also-make",
            // The modules that they need have been tested by themselves.
            "-Dtest=dev.comeback.android.*Test,dev.comeback.sample.*Test",
            "-Dsurefire.failIfNoSpecifiedTests=false",
        ]),
    )
}

/// A process of its own, like every step: so what it prints is in the log.
fn generate(steps: &mut Steps) -> Result<()> {
    steps.run(
        "Kotlin: native libraries and what is generated from them",
        process::xtask().args(["bindings", "tests"]),
    )
}

/// `mvn test`, with the libraries that [`generate`] named and without what `cargo xtask check` looks at.
fn maven() -> Result<Command> {
    let mut maven = java::maven()?;
    maven.args(["--no-transfer-progress", "test", "--fail-at-end"]);
    maven.args(["-Denforcer.skip", "-Dapi-level.skip=true"]);
    // JNA looks there before it looks into jars.
    maven.arg(format!(
        "-Djna.library.path={}",
        bindings::for_tests().display()
    ));
    Ok(maven)
}
