//! `cargo xtask check [PART …]`: what must hold beside the tests. Each part can be asked for by its name.

use crate::steps::Steps;
use crate::{android, files, java, metadata, oracle, package, process, project};
use anyhow::{Context, Result};
use lexopt::{Arg, Parser};
use std::process::Command;

struct Part {
    name: &'static str,
    about: &'static str,
    /// A minute at most, on a machine that has built the tests.
    is_quick: bool,
    run: fn(&mut Steps) -> Result<()>,
}

const PARTS: [Part; 15] = [
    Part {
        name: "files",
        about: "every TOML, XML and YAML file parses, and Gradle's scripts use no name that their catalogue lacks",
        is_quick: true,
        run: |steps| steps.step("Files that other tools read", files::check),
    },
    Part {
        name: "format",
        about: "rustfmt and ktlint",
        is_quick: true,
        run: format,
    },
    Part {
        name: "lints",
        about: "clippy: the core alone, with `tokio`, and everything",
        is_quick: false,
        run: lints,
    },
    Part {
        name: "oldest",
        about: "the crate compiles with the oldest compiler that it promises",
        is_quick: false,
        run: oldest,
    },
    Part {
        name: "wasm",
        about: "the core compiles for WebAssembly in a browser",
        is_quick: false,
        run: wasm,
    },
    Part {
        name: "package",
        about: "what is published of the crate: its files, and the lowest versions that it may be built with",
        is_quick: false,
        run: package::check,
    },
    Part {
        name: "deny",
        about: "licences, origins and banned crates among the dependencies",
        is_quick: false,
        run: |steps| steps.step("Dependencies: cargo-deny", package::deny),
    },
    Part {
        name: "semver",
        about: "the crate's public API against the last release",
        is_quick: false,
        run: |steps| steps.step("The public API: cargo-semver-checks", package::semver),
    },
    Part {
        name: "docs",
        about: "rustdoc and Dokka find nothing to warn of",
        is_quick: false,
        run: docs,
    },
    Part {
        name: "api",
        about: "Kotlin's public API is the committed one; nothing newer than Android's API 24; one version of each dependency",
        is_quick: false,
        run: api,
    },
    Part {
        name: "metadata",
        about: "what Gradle reads of the Maven artefacts: JNA and OkHttp as Android wants them, and as a JVM does",
        is_quick: false,
        run: |steps| steps.step("What Gradle reads of the Maven artefacts", metadata::check),
    },
    Part {
        name: "bench",
        about: "the Kotlin benchmarks compile",
        is_quick: false,
        run: bench,
    },
    Part {
        name: "size",
        about: "the native libraries are small enough for an app",
        is_quick: false,
        run: |steps| steps.run("Size of the native libraries", process::xtask().arg("size")),
    },
    Part {
        name: "oracle",
        about: "the core agrees with an independent model, where there is one",
        is_quick: false,
        run: compare_with_model,
    },
    Part {
        name: "android",
        about: "the core for Android: types, links, keep rules, as far as this machine can",
        is_quick: false,
        run: android::checks,
    },
];

pub fn help() -> String {
    let mut text = "Usage: cargo xtask check [PART …]     all of them, unless named\n\n".to_owned();
    for part in &PARTS {
        text += &format!("  {:<10} {}\n", part.name, part.about);
    }
    text
}

pub fn run(mut arguments: Parser) -> Result<()> {
    let mut chosen = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("help") | Arg::Short('h') => {
                print!("{}", help());
                return Ok(());
            }
            Arg::Value(name) => {
                let part = PARTS.iter().find(|part| name == part.name);
                chosen.push(part.with_context(|| {
                    format!(
                        "there is no part `{}`\n\n{}",
                        name.to_string_lossy(),
                        help()
                    )
                })?);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if chosen.is_empty() {
        chosen = PARTS.iter().collect();
    }
    let mut steps = Steps::begin("check")?;
    for part in chosen {
        // The steps remember what failed; the other parts are checked all the same.
        let _ = (part.run)(&mut steps);
    }
    steps.end()
}

/// For `cargo xtask ci`, before the tests.
pub fn quick(steps: &mut Steps) {
    for part in PARTS.iter().filter(|part| part.is_quick) {
        let _ = (part.run)(steps);
    }
}

/// And after them.
pub fn slow(steps: &mut Steps) {
    for part in PARTS.iter().filter(|part| !part.is_quick) {
        let _ = (part.run)(steps);
    }
}

/// The comparison and the fuzz targets are workspaces of their own, with lock files of their own.
const OTHER_WORKSPACES: [&str; 2] = ["fuzz/Cargo.toml", "evidence/peers-rust/Cargo.toml"];

fn format(steps: &mut Steps) -> Result<()> {
    steps.step("Format: rustfmt", |step| {
        step.run(process::cargo("fmt").args(["--all", "--check"]))?;
        for manifest in OTHER_WORKSPACES {
            step.run(process::cargo("fmt").args(["--manifest-path", manifest, "--check"]))?;
        }
        Ok(())
    })?;
    steps.run(
        "Format: ktlint (`mvn spotless:apply` repairs)",
        maven()?.args(["--quiet", "--fail-at-end", "spotless:check"]),
    )
}

fn lints(steps: &mut Steps) -> Result<()> {
    // What a feature alone brings must not lean on another one.
    for (name, features) in [
        ("Lints: everything", &["--workspace", "--all-features"][..]),
        ("Lints: the core alone", &[]),
        ("Lints: with `tokio`", &["--features", "tokio"]),
    ] {
        steps.run(
            name,
            process::cargo("clippy")
                .arg("--all-targets")
                .args(features)
                .args(["--", "-D", "warnings"]),
        )?;
    }
    Ok(())
}

/// The compiler that `rust-version` promises, where rustup has it. Elsewhere clippy alone looks: it knows since when the standard library has a
/// name (`incompatible_msrv`), but nothing of the language and of dependencies.
fn oldest(steps: &mut Steps) -> Result<()> {
    let manifest = include_str!("../../Cargo.toml");
    let promised = |line: &'static str| line.strip_prefix("rust-version = \"")?.split('"').next();
    let version = manifest
        .lines()
        .find_map(promised)
        .context("Cargo.toml names no `rust-version`")?;
    let rustup = |program: &[&str]| {
        let mut rustup = Command::new("rustup");
        rustup.args(["run", version]).args(program);
        rustup.current_dir(project::root());
        rustup
    };
    steps.step(&format!("Rust {version} compiles the crate"), |step| {
        let is_there = rustup(&["rustc", "--version"]).output();
        if !is_there.is_ok_and(|output| output.status.success()) {
            step.skip(format!(
                "`rustup toolchain install {version} --profile minimal`"
            ));
            return Ok(());
        }
        // All that does not need the binding's newer compiler. An output directory of its own: in the usual one, each compiler would build anew
        // what the other one built.
        step.run(
            rustup(&["cargo", "check", "--lib"])
                .args(["--features", "reqwest-middleware,tower,tracing"])
                .arg("--target-dir")
                .arg(project::target().join("oldest")),
        )
    })
}

/// The core alone: tokio's timers and the clock need an operating system.
fn wasm(steps: &mut Steps) -> Result<()> {
    const TARGET: &str = "wasm32-unknown-unknown";
    steps.step("The core for WebAssembly", |step| {
        let mut rustc = Command::new("rustc");
        let library = rustc.args(["--print", "target-libdir", "--target", TARGET]);
        let folder = process::output(library)?;
        if !std::path::Path::new(folder.trim()).exists() {
            step.skip(format!("`rustup target add {TARGET}`"));
            return Ok(());
        }
        step.run(process::cargo("check").args(["--lib", "--target", TARGET]))
    })
}

fn docs(steps: &mut Steps) -> Result<()> {
    steps.step("Documentation: rustdoc", |step| {
        // Links must not lead to what is only there with another feature.
        for features in [&[][..], &["--features", "tokio"], &["--all-features"]] {
            step.run(
                process::cargo("doc")
                    .arg("--no-deps")
                    .args(features)
                    .env("RUSTDOCFLAGS", "-D warnings"),
            )?;
        }
        Ok(())
    })?;
    steps.run("Documentation: Dokka", process::xtask().arg("docs"))
}

fn api(steps: &mut Steps) -> Result<()> {
    steps.step("Kotlin's public API, and Android's API 24", |step| {
        step.run(process::xtask().args(["bindings", "tests"]))?;
        step.run(maven()?.args([
            "test",
            "--projects",
            "comeback-checks",
            "--also-make",
            "-Dtest=PublicApiTest,ShrinkerRulesTest",
            "-Dsurefire.failIfNoSpecifiedTests=false",
        ]))
    })
}

fn bench(steps: &mut Steps) -> Result<()> {
    steps.step("Benchmarks in Kotlin compile", |step| {
        step.run(process::xtask().args(["bindings", "tests"]))?;
        step.run(maven()?.args([
            "process-classes",
            "--projects",
            ":comeback-bench",
            "--also-make",
        ]))
    })
}

fn compare_with_model(steps: &mut Steps) -> Result<()> {
    steps.step("The independent model", |step| {
        if !oracle::is_here() {
            step.skip("it stands outside the repository (`cargo xtask oracle`)");
            return Ok(());
        }
        step.run(process::xtask().arg("oracle"))
    })
}

fn maven() -> Result<Command> {
    let mut maven = java::maven()?;
    maven.arg("--no-transfer-progress");
    Ok(maven)
}
