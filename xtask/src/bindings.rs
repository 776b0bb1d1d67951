//! `cargo xtask bindings [core|client|library|tests]`: the generated half of each Kotlin binding, and its native library for this machine.
//!
//! A library is built once and used twice: unstripped it carries the metadata that uniffi's generator reads, stripped it
//! travels in the jar. Files that did not change are not written, so that nothing after them is built again.
//!
//! `library` is the core's library alone, without the generator. `tests` takes both libraries in the dev profile, from the one build that makes the Rust
//! tests too. They lie in a folder where the Kotlin tests are told to look, and a jar never gets them. What is generated from them is the same.

use crate::{fresh, process, project};
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
    /// Where cargo puts the library for tests, in `target/debug`.
    for_tests: &'static str,
}

/// The core: all that an app needs which brings an HTTP client of its own.
pub const CORE: Binding = Binding {
    package: "comeback",
    features: &["uniffi"],
    library: "comeback",
    generated: "dev/comeback/ffi/comeback.kt",
    module: "comeback-ffi",
    for_tests: "",
};

/// The Rust HTTP client, for apps that want it. It takes a few minutes to build, so whoever needs the core alone builds that alone.
pub const CLIENT: Binding = Binding {
    package: "comeback-client",
    features: &[],
    library: "comeback_client",
    generated: "dev/comeback/client/ffi/comeback_client.kt",
    module: "comeback-client-ffi",
    for_tests: "examples",
};

pub fn run(mut arguments: Parser) -> Result<()> {
    let mut bindings = vec![CORE, CLIENT];
    if let Some(argument) = arguments.next()? {
        match argument {
            Arg::Value(part) if part == "core" => bindings = vec![CORE],
            Arg::Value(part) if part == "client" => bindings = vec![CLIENT],
            Arg::Value(part) if part == "library" => return CORE.put_library(),
            Arg::Value(part) if part == "tests" => {
                process::run(&mut build_for_tests())?;
                return bindings.iter().try_for_each(Binding::make_for_tests);
            }
            Arg::Value(part) => bail!(
                "there is no binding `{}`; there are `core`, `client`, `library` and `tests`",
                part.to_string_lossy()
            ),
            other => return Err(other.unexpected().into()),
        }
    }
    bindings.iter().try_for_each(Binding::make)
}

/// The workspace but for this program, which cannot be built anew while it runs.
pub const ALL_BUT_XTASK: [&str; 4] = ["--workspace", "--exclude", "xtask", "--all-features"];

/// Builds all tests of the workspace, the generators, and the libraries that the Kotlin tests load. One build, for cargo compiles a library again for
/// each set of features that it is asked for.
pub fn build_for_tests() -> Command {
    let mut cargo = process::cargo("build");
    cargo.args(ALL_BUT_XTASK);
    cargo.args(["--lib", "--bins", "--tests", "--examples"]);
    cargo
}

/// What of it the demo needs: the core's library, and the generators.
pub fn build_for_demo() -> Command {
    let mut cargo = process::cargo("build");
    cargo.args(["--package", "comeback-bindgen", "--lib", "--bins"]);
    cargo
}

/// Where the Kotlin tests find their native libraries.
pub fn for_tests() -> PathBuf {
    project::target().join("bindings/for-tests")
}

impl Binding {
    /// Builds the library, generates from it, and puts both where Maven looks.
    pub fn make(&self) -> Result<()> {
        // In the dev profile: they run for a moment only.
        process::run(process::cargo("build").args(["--package", "comeback-bindgen", "--bins"]))?;
        self.generate(&self.build()?)?;
        self.put_library()
    }

    /// Builds the library and puts it where it becomes a part of the jar.
    fn put_library(&self) -> Result<()> {
        let library = self.build()?;
        let stripped = self.scratch()?.join("stripped");
        strip(&library, &stripped)?;
        let native = fs::read(&stripped).context("the stripped library cannot be read")?;
        let folder = self.resources().join(jna_folder()?);
        put(&folder.join(self.file_name()?), &native)
    }

    /// The same Kotlin, from the library that a build for tests made.
    pub fn make_for_tests(&self) -> Result<()> {
        let file = self.file_name()?;
        let built = project::target()
            .join("debug")
            .join(self.for_tests)
            .join(file.replace(self.library, &format!("{}_for_tests", self.library)));
        let library = for_tests().join(file);
        if !fresh::is_fresh(&library, std::slice::from_ref(&built)) {
            fs::create_dir_all(for_tests())
                .with_context(|| format!("{} cannot be made", for_tests().display()))?;
            fs::copy(&built, &library)
                .with_context(|| format!("{} cannot be copied", built.display()))?;
        }
        self.generate(&library)
    }

    /// Writes the Kotlin that fits this library, unless it was written from it already.
    fn generate(&self, library: &Path) -> Result<()> {
        let tools = project::target().join("debug");
        let (bindgen, presets) = (tools.join("uniffi-bindgen"), tools.join("presets"));
        let scratch = self.scratch()?;
        let kotlin = self.generated().join("kotlin");
        let binding = kotlin.join(self.generated);
        // Beside it lies which library it was written from: the one for tests, or the one for jars.
        let stamp = scratch.join("generated-from");
        let from = library.display().to_string();
        let config = project::root().join("uniffi.toml");
        let inputs = [library, &bindgen, &presets, &config].map(Path::to_owned);
        if binding.exists()
            && fs::read_to_string(&stamp).is_ok_and(|old| old == from)
            && fresh::is_fresh(&stamp, &inputs)
        {
            return Ok(());
        }
        let mut generate = Command::new(&bindgen);
        generate.arg("generate").arg(library).args([
            "--language",
            "kotlin",
            "--no-format",
            "--out-dir",
        ]);
        process::output(generate.arg(&scratch).current_dir(project::root()))?;
        let written = fs::read(scratch.join(self.generated)).with_context(|| {
            format!(
                "uniffi-bindgen wrote no {}; does uniffi.toml still name that package?",
                self.generated
            )
        })?;
        put(&binding, &written)?;
        if self.package == CORE.package {
            let compiled = process::output(&mut Command::new(presets))?;
            put(
                &kotlin.join("dev/comeback/ffi/CompiledPresets.kt"),
                compiled.as_bytes(),
            )?;
        }
        fs::write(&stamp, from).with_context(|| format!("{} cannot be written", stamp.display()))
    }

    /// Where Maven looks.
    fn generated(&self) -> PathBuf {
        project::kotlin().join(self.module).join("generated")
    }

    /// What becomes a part of the jar: a folder for each desktop.
    pub fn resources(&self) -> PathBuf {
        self.generated().join("resources")
    }

    fn scratch(&self) -> Result<PathBuf> {
        let scratch = project::target().join("bindings").join(self.library);
        fs::create_dir_all(&scratch)
            .with_context(|| format!("{} cannot be made", scratch.display()))?;
        Ok(scratch)
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
