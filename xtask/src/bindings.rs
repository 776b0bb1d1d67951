//! `cargo xtask bindings [core|client]`: the generated half of each Kotlin binding, and its native library for this machine.
//!
//! A library is built once and used twice: unstripped it carries the metadata that uniffi's generator reads, stripped it
//! travels in the jar. Files that did not change are not written, so that nothing after them is built again.

use crate::{process, project};
use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A native library with its half of the binding, and the Maven module that carries both.
pub struct Binding {
    /// The cargo package.
    package: &'static str,
    features: &'static [&'static str],
    /// What the library is called, without what a system puts around it.
    pub library: &'static str,
    /// The file that uniffi's generator writes.
    generated: &'static str,
    module: &'static str,
}

/// The core: all that an app needs which brings an HTTP client of its own.
pub const CORE: Binding = Binding {
    package: "comeback",
    features: &["uniffi"],
    library: "comeback",
    generated: "dev/comeback/ffi/comeback.kt",
    module: "comeback-ffi",
};

/// The Rust HTTP client, for apps that want it. It takes a few minutes to build, so whoever needs the core alone builds that alone.
pub const CLIENT: Binding = Binding {
    package: "comeback-client",
    features: &[],
    library: "comeback_client",
    generated: "dev/comeback/client/ffi/comeback_client.kt",
    module: "comeback-client-ffi",
};

pub fn run(mut arguments: Parser) -> Result<()> {
    let mut bindings = vec![CORE, CLIENT];
    if let Some(argument) = arguments.next()? {
        match argument {
            Arg::Value(part) if part == "core" => bindings = vec![CORE],
            Arg::Value(part) if part == "client" => bindings = vec![CLIENT],
            Arg::Value(part) => bail!(
                "there is no binding `{}`; there are `core` and `client`",
                part.to_string_lossy()
            ),
            other => return Err(other.unexpected().into()),
        }
    }
    bindings.iter().try_for_each(Binding::make)
}

impl Binding {
    /// Builds the library, generates from it, and puts both where Maven looks.
    pub fn make(&self) -> Result<()> {
        let library = self.build()?;
        let tools = tools()?;
        let generated = project::kotlin().join(self.module).join("generated");

        let scratch = project::target().join("bindings").join(self.library);
        if scratch.exists() {
            fs::remove_dir_all(&scratch)
                .with_context(|| format!("{} cannot be emptied", scratch.display()))?;
        }
        fs::create_dir_all(&scratch)
            .with_context(|| format!("{} cannot be made", scratch.display()))?;

        let mut bindgen = Command::new(tools.join("uniffi-bindgen"));
        bindgen.arg("generate").arg(&library).args([
            "--language",
            "kotlin",
            "--no-format",
            "--out-dir",
        ]);
        process::output(bindgen.arg(&scratch).current_dir(project::root()))?;
        let binding = fs::read(scratch.join(self.generated)).with_context(|| {
            format!(
                "uniffi-bindgen wrote no {}; does uniffi.toml still name that package?",
                self.generated
            )
        })?;

        let stripped = scratch.join("stripped");
        strip(&library, &stripped)?;
        let native = fs::read(&stripped).context("the stripped library cannot be read")?;

        put(&generated.join("kotlin").join(self.generated), &binding)?;
        if self.package == CORE.package {
            let presets = process::output(&mut Command::new(tools.join("presets")))?;
            put(
                &generated.join("kotlin/dev/comeback/ffi/CompiledPresets.kt"),
                presets.as_bytes(),
            )?;
        }
        let folder = generated.join("resources").join(jna_folder()?);
        put(&folder.join(self.file_name()?), &native)
    }

    /// Builds the native library for this machine and returns where it lies, with its symbols. The standard library stays the prebuilt one, whatever
    /// is installed: what a jar carries must not depend on that, and a desktop does not miss 170 KiB. Android does (see `toolchain`).
    pub fn build(&self) -> Result<PathBuf> {
        process::run(self.as_library(&mut process::cargo("rustc")))?;
        Ok(project::target().join("library").join(self.file_name()?))
    }

    /// `cargo rustc`, for whatever target, told to make the library. Not a crate type of the manifest: that would cost the link-time
    /// optimisation.
    pub fn as_library<'a>(&self, cargo: &'a mut Command) -> &'a mut Command {
        cargo.args(["--package", self.package, "--lib", "--profile", "library"]);
        for feature in self.features {
            cargo.args(["--features", feature]);
        }
        cargo.args(["--crate-type", "cdylib"])
    }

    fn file_name(&self) -> Result<String> {
        let name = self.library;
        Ok(match std::env::consts::OS {
            "linux" => format!("lib{name}.so"),
            "macos" => format!("lib{name}.dylib"),
            "windows" => format!("{name}.dll"),
            other => bail!("how a library is named on {other} is not known here"),
        })
    }
}

/// Builds the generators; in the dev profile, they run for a moment only.
fn tools() -> Result<PathBuf> {
    process::run(process::cargo("build").args(["--package", "comeback-bindgen", "--bins"]))?;
    Ok(project::target().join("debug"))
}

pub fn strip(library: &Path, stripped: &Path) -> Result<()> {
    let mut strip = Command::new("strip");
    // On macOS exported symbols are kept by -x only; elsewhere they live in a table that is never stripped.
    strip.arg(if cfg!(target_os = "macos") {
        "-x"
    } else {
        "--strip-unneeded"
    });
    process::run(strip.arg("-o").arg(stripped).arg(library))
}

/// Writes a file unless it already has that content, and says so.
fn put(path: &Path, content: &[u8]) -> Result<()> {
    let shown = path.strip_prefix(project::root()).unwrap_or(path).display();
    if fs::read(path).is_ok_and(|old| old == content) {
        eprintln!("   Unchanged {shown}");
        return Ok(());
    }
    let folder = path
        .parent()
        .with_context(|| format!("{shown} is no file"))?;
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    fs::write(path, content).with_context(|| format!("{shown} cannot be written"))?;
    eprintln!("     Written {shown} ({} KB)", content.len().div_ceil(1024));
    Ok(())
}

/// The folder in the jar where JNA looks for libraries of this machine.
fn jna_folder() -> Result<String> {
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "macos" => "darwin",
        "windows" => "win32",
        other => bail!("JNA's name for {other} is not known here"),
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x86-64",
        "x86" => "x86",
        "aarch64" => "aarch64",
        "arm" => "arm",
        other => bail!("JNA's name for {other} is not known here"),
    };
    Ok(format!("{system}-{processor}"))
}
