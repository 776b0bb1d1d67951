//! `cargo xtask test [rust|kotlin|android]`: everything that must hold, cheapest first.

use crate::bindings::{CLIENT, CORE};
use crate::tally::Tally;
use crate::{java, process, project, size};
use anyhow::{Result, bail};
use lexopt::Parser;
use std::process::Command;

pub fn run(mut arguments: Parser) -> Result<()> {
    let (mut rust, mut kotlin, mut android) = (true, true, false);
    if let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Value(part) if part == "rust" => kotlin = false,
            lexopt::Arg::Value(part) if part == "kotlin" => rust = false,
            lexopt::Arg::Value(part) if part == "android" => {
                (rust, kotlin, android) = (false, false, true);
            }
            lexopt::Arg::Value(part) => bail!(
                "there is no part `{}`; there are `rust`, `kotlin` and `android`",
                part.to_string_lossy()
            ),
            other => return Err(other.unexpected().into()),
        }
    }
    if android {
        return crate::android::test();
    }
    // Said at once, not after minutes of Rust.
    let maven = if kotlin { Some(java::maven()?) } else { None };

    let mut tally = Tally::default();
    let result = parts(rust, maven, &mut tally);
    println!(
        "\nNot part of this, minutes each: `cargo xtask test android` (the core for Android: types on four ABIs, run on Linux, keep rules)"
    );
    println!("\n{tally}{}", tally.closing_line());
    result
}

fn parts(rust: bool, maven: Option<Command>, tally: &mut Tally) -> Result<()> {
    if rust {
        rust_part(tally)?;
    }
    if let Some(maven) = maven {
        kotlin_part(maven, tally)?;
    }
    Ok(())
}

fn rust_part(tally: &mut Tally) -> Result<()> {
    step(process::cargo("fmt").args(["--all", "--check"]))?;
    // Workspaces of their own: the fuzz targets have a compiler of their own, the peers a lock file of their own.
    for manifest in ["fuzz/Cargo.toml", "evidence/peers-rust/Cargo.toml"] {
        if project::root().join(manifest).exists() {
            step(process::cargo("fmt").args(["--manifest-path", manifest, "--check"]))?;
        }
    }
    // The core alone, the executor without unsafe code of the binding's, and everything.
    for features in [&[][..], &["--features", "tokio"], &["--all-features"]] {
        step(
            process::cargo("clippy")
                .args(["--all-targets"])
                .args(features)
                .args(["--", "-D", "warnings"]),
        )?;
    }
    let others = [
        "--package",
        "xtask",
        "--package",
        "comeback-bindgen",
        "--package",
        "comeback-herd",
        "--package",
        "comeback-client",
    ];
    step(
        process::cargo("clippy")
            .args(others)
            .args(["--all-targets", "--", "-D", "warnings"]),
    )?;
    with_oldest_compiler()?;
    counted(process::cargo("test").args(["--all-features"]), tally)?;
    counted(process::cargo("test").args(others), tally)?;
    // Links must not lead to what is only there with another feature.
    for features in [&[][..], &["--features", "tokio"], &["--all-features"]] {
        step(
            process::cargo("doc")
                .arg("--no-deps")
                .args(features)
                .env("RUSTDOCFLAGS", "-D warnings"),
        )?;
    }
    Ok(())
}

/// The compiler that `rust-version` promises, where rustup has it. Elsewhere clippy alone has looked: it knows since when the standard library
/// has a name (`incompatible_msrv`), but nothing of the language and of dependencies.
fn with_oldest_compiler() -> Result<()> {
    let manifest = include_str!("../../Cargo.toml");
    let promised = |line: &'static str| line.strip_prefix("rust-version = \"")?.split('"').next();
    let Some(version) = manifest.lines().find_map(promised) else {
        bail!("Cargo.toml names no `rust-version`");
    };
    let rustup = |program: &[&str]| {
        let mut rustup = Command::new("rustup");
        rustup.args(["run", version]).args(program);
        rustup.current_dir(project::root());
        rustup
    };
    let is_there = rustup(&["rustc", "--version"]).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        println!(
            "\n== not compiled with Rust {version}, which is not here: `rustup toolchain install {version} --profile minimal`"
        );
        return Ok(());
    }
    // All that does not need the binding's newer compiler; an output directory of its own, for it would build the other one's things anew.
    step(
        rustup(&["cargo", "check", "--lib", "--features", "reqwest,tracing"])
            .arg("--target-dir")
            .arg(project::target().join("oldest")),
    )
}

fn kotlin_part(mut maven: Command, tally: &mut Tally) -> Result<()> {
    println!("\n== bindings");
    CORE.make()?;
    CLIENT.make()?;
    size::core_is_small()?;
    counted(maven.args(["--no-transfer-progress", "verify"]), tally)?;
    crate::android::quick_test()
}

fn step(command: &mut Command) -> Result<()> {
    println!("\n== {}", process::said(command));
    process::run(command)
}

fn counted(command: &mut Command, tally: &mut Tally) -> Result<()> {
    println!("\n== {}", process::said(command));
    process::lines(command, |line| {
        println!("{line}");
        tally.hear(line);
    })
}
