//! A Rust that compiles for Android: rustup's targets where they are installed, else Debian's compiler with the standard library's sources.

use super::Target;
use crate::{process, project};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub enum Toolchain {
    /// The usual cargo; the targets' standard library is installed.
    Rustup,
    /// `/usr/bin/cargo` builds the standard library from its sources.
    Debian,
}

const CARGO: &str = "/usr/bin/cargo";
const RUSTC: &str = "/usr/bin/rustc";
const SOURCES: &str = "/usr/lib/rustlib/src/rust/library";

impl Toolchain {
    pub fn find() -> Result<Toolchain> {
        if [CARGO, RUSTC, SOURCES]
            .iter()
            .all(|path| Path::new(path).exists())
        {
            return Ok(Toolchain::Debian);
        }
        let installed = Command::new("rustup")
            .args(["target", "list", "--installed"])
            .stderr(Stdio::null())
            .output()
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        if super::TARGETS
            .iter()
            .all(|target| installed.contains(target.triple))
        {
            return Ok(Toolchain::Rustup);
        }
        bail!(
            "no Rust for Android is installed: `rustup target add {}`, or on Debian `apt-get install rustc-web cargo-web rust-web-src`",
            super::TARGETS.map(|target| target.triple).join(" ")
        )
    }

    /// Cargo's output.
    pub fn output(&self) -> PathBuf {
        match self {
            Toolchain::Rustup => project::target(),
            Toolchain::Debian => super::place(),
        }
    }

    pub fn cargo(&self, subcommand: &str, target: &Target) -> Command {
        self.cargo_with(subcommand, target, "std,panic_unwind")
    }

    /// With these parts of the standard library, where they have to be built.
    pub fn cargo_with(&self, subcommand: &str, target: &Target, parts: &str) -> Command {
        let mut cargo = match self {
            Toolchain::Rustup => process::cargo(subcommand),
            Toolchain::Debian => {
                let mut cargo = Command::new(CARGO);
                cargo
                    .arg(subcommand)
                    .arg(format!("-Zbuild-std={parts}"))
                    .arg("--target-dir")
                    .arg(self.output())
                    .current_dir(project::root())
                    .env("RUSTC", RUSTC)
                    .env("RUSTC_BOOTSTRAP", "1");
                // What rustup's cargo said about itself is not meant for this one.
                for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTDOC"] {
                    cargo.env_remove(name);
                }
                cargo
            }
        };
        cargo.args(["--target", target.triple]);
        cargo
    }
}
