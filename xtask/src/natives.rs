//! `cargo xtask natives [core|client]`: the native libraries of a jar for every desktop, built on this machine, and run where it can run them.
//!
//! Zig is the C compiler and linker for all of them, through cargo-zigbuild. Both come from PyPI into a folder of their own; nothing is installed. What is
//! built so for Linux runs on glibc 2.17 and newer.

use crate::bindings::{Binding, CLIENT, CORE};
use crate::{process, project};
use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

struct Desktop {
    name: &'static str,
    triple: &'static str,
    /// A part of the name that cargo-zigbuild alone reads: the oldest glibc.
    oldest: &'static str,
    /// Where JNA looks in a jar.
    folder: &'static str,
    /// What a library is called.
    prefix: &'static str,
    suffix: &'static str,
    runner: Runner,
}

/// How a program for that desktop runs here.
enum Runner {
    Linux,
    Qemu,
    Wine,
    /// Nobody here runs it.
    None,
}

const DESKTOPS: [Desktop; 5] = [
    Desktop {
        name: "Linux x86-64",
        triple: "x86_64-unknown-linux-gnu",
        oldest: ".2.17",
        folder: "linux-x86-64",
        prefix: "lib",
        suffix: ".so",
        runner: Runner::Linux,
    },
    Desktop {
        name: "Linux arm64",
        triple: "aarch64-unknown-linux-gnu",
        oldest: ".2.17",
        folder: "linux-aarch64",
        prefix: "lib",
        suffix: ".so",
        runner: Runner::Qemu,
    },
    Desktop {
        name: "Windows x86-64",
        triple: "x86_64-pc-windows-gnu",
        oldest: "",
        folder: "win32-x86-64",
        prefix: "",
        suffix: ".dll",
        runner: Runner::Wine,
    },
    Desktop {
        name: "macOS arm64",
        triple: "aarch64-apple-darwin",
        oldest: "",
        folder: "darwin-aarch64",
        prefix: "lib",
        suffix: ".dylib",
        runner: Runner::None,
    },
    Desktop {
        name: "macOS x86-64",
        triple: "x86_64-apple-darwin",
        oldest: "",
        folder: "darwin-x86-64",
        prefix: "lib",
        suffix: ".dylib",
        runner: Runner::None,
    },
];

pub fn run(mut arguments: Parser) -> Result<()> {
    let mut bindings = vec![CORE, CLIENT];
    let mut desktops: Vec<&Desktop> = DESKTOPS.iter().collect();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Value(part) if part == "core" => bindings = vec![CORE],
            Arg::Value(part) if part == "client" => bindings = vec![CLIENT],
            Arg::Long("only") => {
                let folder = arguments.value()?;
                desktops.retain(|desktop| folder == desktop.folder);
                if desktops.is_empty() {
                    let known = DESKTOPS.map(|desktop| desktop.folder).join(", ");
                    bail!("--only takes one of {known}");
                }
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let tools = tools()?;
    for binding in &bindings {
        for desktop in &desktops {
            let library = desktop.build(binding, &tools)?;
            let shown = library.strip_prefix(project::root()).unwrap_or(&library);
            let size = fs::metadata(&library)?.len().div_ceil(1024);
            let shown_how = if binding.library == CORE.library {
                desktop.try_out(&library, &tools)?
            } else {
                "built only".to_owned()
            };
            println!(
                "{:<15} {} ({size} KiB): {shown_how}",
                desktop.name,
                shown.display()
            );
        }
    }
    Ok(())
}

/// The folder of Python's that has Zig and cargo-zigbuild.
fn tools() -> Result<PathBuf> {
    let place = project::target().join("natives/tools");
    let bin = place.join("bin");
    if !bin.join("cargo-zigbuild").exists() {
        process::run(Command::new("python3").args(["-m", "venv"]).arg(&place))
            .context("Zig and cargo-zigbuild come from PyPI: python3 with its module venv is needed (`apt-get install python3-venv`)")?;
        process::run(
            Command::new(bin.join("pip"))
                .args(["install", "--quiet"])
                .args(TOOLS),
        )?;
    }
    Ok(bin)
}

impl Desktop {
    /// The stripped library, in the folder from which it goes into the jar.
    fn build(&self, binding: &Binding, tools: &Path) -> Result<PathBuf> {
        // Done at once where it is there.
        process::run(Command::new("rustup").args(["target", "add", self.triple]))?;
        let output = project::target().join("natives");
        let mut cargo = Command::new(tools.join("cargo-zigbuild"));
        cargo
            .current_dir(project::root())
            .env("PATH", with_first(tools)?)
            .env("CARGO_PROFILE_LIBRARY_STRIP", "symbols")
            .arg("rustc")
            .arg("--target-dir")
            .arg(&output)
            .args(["--target", &format!("{}{}", self.triple, self.oldest)]);
        process::run(binding.as_library(&mut cargo))?;
        let name = format!("{}{}{}", self.prefix, binding.library, self.suffix);
        let built = output.join(self.triple).join("library").join(&name);
        let folder = binding.resources().join(self.folder);
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let library = folder.join(name);
        fs::copy(&built, &library)
            .with_context(|| format!("{} cannot be copied", built.display()))?;
        Ok(library)
    }

    /// A small program loads the core, hears of an edge and survives a panic, where something here runs programs for that desktop.
    fn try_out(&self, library: &Path, tools: &Path) -> Result<String> {
        let mut run = match self.runner {
            Runner::Linux if cfg!(all(target_os = "linux", target_arch = "x86_64")) => {
                Command::new("env")
            }
            Runner::Qemu if Path::new(ARM64_ROOT).exists() && is_there("qemu-aarch64-static") => {
                let mut qemu = Command::new("qemu-aarch64-static");
                qemu.args(["-L", ARM64_ROOT]);
                qemu
            }
            Runner::Wine if is_there("wine") => {
                let mut wine = Command::new("wine");
                wine.env("WINEDEBUG", "-all");
                wine
            }
            _ => return Ok("built only".to_owned()),
        };
        let folder = project::target().join("natives/smoke");
        fs::create_dir_all(&folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        let smoke = folder.join(format!("{}.exe", self.folder));
        let zig = self.triple.replace("-unknown", "").replace("-pc", "");
        let source = project::root().join("android/link/run/smoke.c");
        process::run(
            Command::new(tools.join("python"))
                .args(["-m", "ziglang", "cc", "-target", &zig, "-o"])
                .arg(&smoke)
                .arg(source),
        )?;
        match (process::output(run.arg(&smoke).arg(library)), &self.runner) {
            (Ok(said), _) => Ok(format!("run: {}", said.trim())),
            // Wine 8.0 has no bcryptprimitives.dll, from which Rust's standard library takes its random numbers.
            (Err(error), Runner::Wine) => Ok(format!("built only, Wine does not run it: {error}")),
            (Err(error), _) => Err(error),
        }
    }
}

/// Where Debian's libc6-arm64-cross puts glibc.
const ARM64_ROOT: &str = "/usr/aarch64-linux-gnu";

fn is_there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// PATH with a folder before all others: cargo-zigbuild looks there for the Python that has Zig.
fn with_first(folder: &Path) -> Result<std::ffi::OsString> {
    let old = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&old));
    std::env::join_paths(all).context("PATH cannot be extended")
}
