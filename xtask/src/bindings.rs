//! `cargo xtask bindings`: the generated half of the Kotlin binding, and the native library for this machine.
//!
//! One library is built and used twice: unstripped it carries the metadata that uniffi's generator reads, stripped it
//! travels in the jar. Files that did not change are not written, so that nothing after them is built again.

use crate::{process, project};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the stripped library may weigh in an app. On x86-64 Linux, where it is checked, it
/// is near 620 KB now; a jump means that optimisation was lost on the way, or that something large
/// came in.
const LARGEST: u64 = 720 * 1024;

pub fn run() -> Result<()> {
    let library = library()?;
    let tools = tools()?;
    let generated = project::generated();

    let scratch = project::target().join("bindings");
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
    let binding = fs::read(scratch.join("dev/comeback/ffi/comeback.kt"))
        .context("uniffi-bindgen wrote no dev/comeback/ffi/comeback.kt; does uniffi.toml still name that package?")?;

    let presets = process::output(&mut Command::new(tools.join("presets")))?;

    let stripped = scratch.join("stripped");
    strip(&library, &stripped)?;
    let native = fs::read(&stripped).context("the stripped library cannot be read")?;

    put(
        &generated.join("kotlin/dev/comeback/ffi/comeback.kt"),
        &binding,
    )?;
    put(
        &generated.join("kotlin/dev/comeback/ffi/CompiledPresets.kt"),
        presets.as_bytes(),
    )?;
    put(&library_in_jar()?, &native)
}

/// Whether the library is still small enough for an app.
pub fn is_small() -> Result<()> {
    let path = library_in_jar()?;
    let size = fs::metadata(&path)
        .with_context(|| format!("{} is missing", path.display()))?
        .len();
    let checked = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if checked && size > LARGEST {
        bail!(
            "{} has {} KB, more than {} KB",
            path.display(),
            size / 1024,
            LARGEST / 1024
        );
    }
    Ok(())
}

fn library_in_jar() -> Result<PathBuf> {
    Ok(project::generated()
        .join("resources")
        .join(jna_folder()?)
        .join(file_name()?))
}

/// Builds the native library. Not a crate type of the manifest: that would cost the link-time optimisation.
fn library() -> Result<PathBuf> {
    let mut build = process::cargo("rustc");
    build.args([
        "--package",
        "comeback",
        "--lib",
        "--release",
        "--features",
        "uniffi",
        "--crate-type",
        "cdylib",
    ]);
    process::run(&mut build)?;
    Ok(project::target().join("release").join(file_name()?))
}

/// Builds the generators; in the dev profile, they run for a moment only.
fn tools() -> Result<PathBuf> {
    process::run(process::cargo("build").args(["--package", "comeback-bindgen", "--bins"]))?;
    Ok(project::target().join("debug"))
}

fn strip(library: &Path, stripped: &Path) -> Result<()> {
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

fn file_name() -> Result<&'static str> {
    Ok(match std::env::consts::OS {
        "linux" => "libcomeback.so",
        "macos" => "libcomeback.dylib",
        "windows" => "comeback.dll",
        other => bail!("how a library is named on {other} is not known here"),
    })
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
