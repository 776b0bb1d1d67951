//! `cargo xtask android …`: what of the Android artefact can be built and shown, with or without Google's tools.

mod aar;
pub mod link;
mod rules;

use crate::bindings::CORE;
use crate::steps::Steps;
use crate::toolchain::{HOW_TO_GET_SOURCES, Toolchain};
use crate::{java, process, project};
use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What an Android library is built for: cargo's name, Android's, clang's.
pub struct Target {
    pub triple: &'static str,
    pub abi: &'static str,
    pub clang: &'static str,
}

pub const TARGETS: [Target; 4] = [
    Target {
        triple: "aarch64-linux-android",
        abi: "arm64-v8a",
        clang: "aarch64-linux-android24",
    },
    Target {
        triple: "armv7-linux-androideabi",
        abi: "armeabi-v7a",
        clang: "armv7a-linux-androideabi24",
    },
    Target {
        triple: "x86_64-linux-android",
        abi: "x86_64",
        clang: "x86_64-linux-android24",
    },
    Target {
        triple: "i686-linux-android",
        abi: "x86",
        clang: "i686-linux-android24",
    },
];

const HELP: &str = "\
Usage: cargo xtask android <command>

  check   type-check the core for the four ABIs, and the Rust HTTP client where a C compiler is at hand
  build   the four libraries, with the NDK that ANDROID_NDK_HOME names: target/android/jniLibs
  link    the libraries but armv7's without an NDK, against the permitted symbols of API 24; never to be shipped
  run     those for arm64 and x86-64 on Linux, behind a shim: a smoke test on both (arm64 under qemu), comeback-core's tests on x86-64
  aar     pack the AAR without Gradle, from what `build` or else `link` made, and check what is in it
  rules   shrink a small program with the AAR's keep rules and run it; and show that without a rule it does not run
";

pub fn run(mut arguments: Parser) -> Result<()> {
    let Some(argument) = arguments.next()? else {
        print!("{HELP}");
        return Ok(());
    };
    let Arg::Value(command) = argument else {
        return Err(argument.unexpected().into());
    };
    crate::nothing_more(&mut arguments)?;
    match command.to_str() {
        Some("check") => check(),
        Some("build") => build(),
        Some("link") => link::run(),
        Some("run") => link::run_on_linux(),
        Some("aar") => aar::run(),
        Some("rules") => rules::run(),
        _ => bail!(
            "there is no command `android {}`; `cargo xtask android` lists what there is",
            command.to_string_lossy()
        ),
    }
}

type Missing = fn() -> Option<String>;

/// A command above that shows something, and what keeps it from running here, if anything does.
const CHECKS: [(&str, Missing); 5] = [
    ("check", || toolchain().err().map(|error| error.to_string())),
    ("link", link::missing),
    ("aar", || link::missing().or_else(no_maven)),
    ("run", || link::missing_to_run().or_else(no_maven)),
    ("rules", no_maven),
];

/// All that can be shown on this machine. Of what needs tools that are not here, a word says so.
pub fn checks(steps: &mut Steps) -> Result<()> {
    for (name, missing) in CHECKS {
        // The steps remember what failed; the others are made all the same.
        let _ = steps.step(&format!("Android: {name}"), |step| match missing() {
            Some(missing) => {
                step.skip(missing);
                Ok(())
            }
            None => step.run(process::xtask().args(["android", name])),
        });
    }
    Ok(())
}

fn no_maven() -> Option<String> {
    java::maven().err().map(|error| error.to_string())
}

/// A Rust that compiles for the four.
fn toolchain() -> Result<Toolchain> {
    Toolchain::compiling_for(&TARGETS.map(|target| target.triple))
}

fn check() -> Result<()> {
    let toolchain = Toolchain::checking_for(&TARGETS.map(|target| target.triple))?;
    for target in &TARGETS {
        println!("{}", target.triple);
        process::run(toolchain.cargo("check", target.triple).args([
            "--package",
            "comeback",
            "--features",
            "uniffi",
        ]))?;
    }
    println!("The core type-checks for the four ABIs.");
    check_client(&toolchain)
}

/// The Rust HTTP client too. Its TLS library is partly C, which wants a compiler and headers: those of Linux will do for a check, and for nothing else.
fn check_client(toolchain: &Toolchain) -> Result<()> {
    let (compiler, archiver) = ("clang-19", "llvm-ar-19");
    for target in &TARGETS {
        let (headers, more) = match target.abi {
            "armeabi-v7a" => ("/usr/arm-linux-gnueabihf/include", "-D__ARM_PCS_VFP"),
            "x86" => ("/usr/i686-linux-gnu/include", ""),
            _ => (
                "/usr/include/x86_64-linux-musl",
                "-D_GNU_SOURCE -D__errno_location=__errno",
            ),
        };
        let tools_are_there = [compiler, archiver].iter().all(|tool| link::is_there(tool));
        if !tools_are_there || !Path::new(headers).exists() {
            println!(
                "The client is not checked for {}: `apt-get install clang-19 llvm-19 musl-dev libc6-dev-armhf-cross libc6-dev-i386-cross`",
                target.abi
            );
            continue;
        }
        println!("{}, the client", target.triple);
        let name = target.triple.replace('-', "_");
        let flags = format!(
            "--target={} -nostdlibinc -isystem {headers} {more}",
            target.clang
        );
        process::run(
            toolchain
                .cargo("check", target.triple)
                .args(["--package", "comeback-client"])
                .env(format!("CC_{name}"), compiler)
                .env(format!("AR_{name}"), archiver)
                .env(format!("CFLAGS_{name}"), flags),
        )?;
        println!("The client type-checks for {}.", target.abi);
    }
    Ok(())
}

fn build() -> Result<()> {
    let ndk = std::env::var_os("ANDROID_NDK_HOME").map(PathBuf::from).context(
        "ANDROID_NDK_HOME is not set: install the NDK (r27 or newer) and let it name its folder; `cargo xtask android link` does without",
    )?;
    let tools = ndk
        .join("toolchains/llvm/prebuilt")
        .join(format!(
            "{}-x86_64",
            std::env::consts::OS.replace("macos", "darwin")
        ))
        .join("bin");
    let toolchain = toolchain()?;
    if !toolchain.rebuilds {
        println!(
            "The libraries will have 170 KiB of the standard library that nothing uses. With its sources they go without: {HOW_TO_GET_SOURCES}"
        );
    }
    for target in &TARGETS {
        let linker = tools.join(format!("{}-clang", target.clang));
        let built = library(&toolchain, target, &linker)?;
        put_stripped(&tools.join("llvm-strip"), &built, target)?;
    }
    Ok(())
}

/// The library, built with this linker and not stripped yet.
pub fn library(toolchain: &Toolchain, target: &Target, linker: &Path) -> Result<PathBuf> {
    let name = target.triple.to_uppercase().replace('-', "_");
    let mut cargo = toolchain.cargo("rustc", target.triple);
    cargo.env(format!("CARGO_TARGET_{name}_LINKER"), linker);
    process::run(CORE.as_library(&mut cargo))?;
    Ok(toolchain
        .output()
        .join(target.triple)
        .join("library/libcomeback.so"))
}

pub fn put_stripped(strip: &Path, library: &Path, target: &Target) -> Result<PathBuf> {
    let folder = libraries().join(target.abi);
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let stripped = folder.join("libcomeback.so");
    process::run(
        Command::new(strip)
            .arg("--strip-unneeded")
            .arg("-o")
            .arg(&stripped)
            .arg(library),
    )?;
    Ok(stripped)
}

/// Where Gradle and `aar` take the libraries from.
pub fn libraries() -> PathBuf {
    place().join("jniLibs")
}

pub fn place() -> PathBuf {
    project::target().join("android")
}
