//! A Rust for what the usual one cannot build: other targets, and the standard library itself.
//!
//! The prebuilt standard library brings 170 KiB of its own that name a panic's frames, and link-time optimisation cannot take them out. Built anew it
//! leaves them out. Cargo does that for compilers that are told to allow unstable options; the library's sources have to be there: rustup's `rust-src`
//! beside the usual compiler, or Debian's packages.

use crate::{process, project};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Toolchain {
    compiler: Compiler,
    /// Whether it builds the standard library anew.
    pub rebuilds: bool,
}

enum Compiler {
    Usual,
    Debian,
}

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const SOURCES: &str = "lib/rustlib/src/rust/library";

impl Toolchain {
    /// One that builds the standard library anew, where its sources are at hand.
    pub fn rebuilding() -> Option<Toolchain> {
        let debian = [DEBIAN_CARGO, DEBIAN_RUSTC]
            .iter()
            .all(|path| Path::new(path).exists())
            && Path::new("/usr").join(SOURCES).exists();
        let compiler = match said("rustc", &["--print", "sysroot"]) {
            Some(sysroot) if Path::new(sysroot.trim()).join(SOURCES).exists() => Compiler::Usual,
            _ if debian => Compiler::Debian,
            _ => return None,
        };
        Some(Toolchain {
            compiler,
            rebuilds: true,
        })
    }

    /// One that checks types for these targets: with rustup's standard library where it is, which saves a minute for each target.
    pub fn checking_for(triples: &[&str]) -> Result<Toolchain> {
        Toolchain::prebuilt(triples).map_or_else(|| Toolchain::compiling_for(triples), Ok)
    }

    /// The usual one with the standard libraries that rustup installed, if it has them all.
    fn prebuilt(triples: &[&str]) -> Option<Toolchain> {
        let installed = said("rustup", &["target", "list", "--installed"]).unwrap_or_default();
        let is_there = |triple: &&str| installed.lines().any(|line| line == *triple);
        triples.iter().all(is_there).then_some(Toolchain {
            compiler: Compiler::Usual,
            rebuilds: false,
        })
    }

    /// One that compiles for these targets: if it can, with a standard library built anew, else with rustup's.
    pub fn compiling_for(triples: &[&str]) -> Result<Toolchain> {
        if let Some(toolchain) = Toolchain::rebuilding() {
            return Ok(toolchain);
        }
        if let Some(toolchain) = Toolchain::prebuilt(triples) {
            return Ok(toolchain);
        }
        bail!(
            "no Rust for {} is installed: {HOW_TO_GET_SOURCES}, or `rustup target add {}`",
            triples.join(", "),
            triples.join(" ")
        )
    }

    /// Where its builds go.
    pub fn output(&self) -> PathBuf {
        if self.rebuilds {
            project::target().join("rebuilt")
        } else {
            project::target()
        }
    }

    pub fn cargo(&self, subcommand: &str, triple: &str) -> Command {
        self.cargo_with(subcommand, triple, "std,panic_unwind")
    }

    /// With these parts of the standard library, where they are built anew.
    pub fn cargo_with(&self, subcommand: &str, triple: &str, parts: &str) -> Command {
        let mut cargo = match self.compiler {
            Compiler::Usual => process::cargo_into(subcommand, &self.output()),
            Compiler::Debian => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                cargo
                    .arg(subcommand)
                    .current_dir(project::root())
                    .arg("--target-dir")
                    .arg(self.output())
                    .env("RUSTC", DEBIAN_RUSTC);
                // What rustup's cargo said about itself is not meant for this one.
                for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTDOC"] {
                    cargo.env_remove(name);
                }
                cargo
            }
        };
        cargo.args(["--target", triple]);
        if self.rebuilds {
            // Without `backtrace`, which names frames. A panic still unwinds, and still becomes "stop, internal".
            cargo
                .arg(format!("-Zbuild-std={parts}"))
                .arg("-Zbuild-std-features=panic-unwind,optimize_for_size")
                .env("RUSTC_BOOTSTRAP", "1");
        }
        cargo
    }
}

/// What to install for [`Toolchain::rebuilding`].
pub const HOW_TO_GET_SOURCES: &str = "`rustup component add rust-src`, or on Debian `apt-get install rustc-web cargo-web rust-web-src`";

/// What a program prints, if it is there and succeeds.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(project::root())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
