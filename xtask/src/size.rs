//! `cargo xtask size`: what the native libraries weigh in an app, stripped. The core's weight is checked.

use crate::android;
use crate::bindings::{Binding, CLIENT, CORE, strip};
use crate::toolchain::{HOW_TO_GET_SOURCES, Toolchain};
use crate::{process, project};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

/// What the core may weigh in an app, with a standard library built anew: so it is shipped for Android.
const LARGEST_CORE: u64 = 400 * 1024;

/// What it may weigh with the prebuilt standard library, checked on x86-64 Linux: so it lies in the jar. It is near 510 KiB now, of which 170 KiB
/// are the standard library's own code that names the frames of a panic. A jump means that optimisation was lost on the way, or that
/// something large came in.
const LARGEST_PREBUILT: u64 = 540 * 1024;

const X86_64_LINUX: &str = "x86_64-unknown-linux-gnu";

pub fn run() -> Result<()> {
    for (binding, who) in [
        (CORE, "every app"),
        (CLIENT, "an app that uses comeback-client, beside the core"),
    ] {
        let size = prebuilt(&binding)?;
        println!("{:<20} {:>6} KiB   {who}", binding.library, kib(size));
    }
    core_is_small()?;
    rebuilt()
}

/// Whether the core in the jar is still small enough for every app.
pub fn core_is_small() -> Result<()> {
    if on_x86_64_linux() {
        within("the core's library", prebuilt(&CORE)?, LARGEST_PREBUILT)?;
    }
    Ok(())
}

/// The core as Android gets it. Measured where the standard library can be built anew; elsewhere a line says what is missing.
pub fn rebuilt() -> Result<()> {
    let Some(toolchain) = Toolchain::rebuilding() else {
        println!(
            "Not measured: the core with a standard library built anew, as Android gets it. It needs the sources: {HOW_TO_GET_SOURCES}"
        );
        return Ok(());
    };
    if on_x86_64_linux() {
        process::run(CORE.as_library(&mut toolchain.cargo("rustc", X86_64_LINUX)))?;
        let library = toolchain
            .output()
            .join(X86_64_LINUX)
            .join("library/libcomeback.so");
        check("x86-64 Linux", stripped(&library, "comeback-rebuilt")?)?;
    }
    match android::link::missing() {
        Some(missing) => println!("Not measured: the core for Android's arm64. {missing}"),
        None => check("arm64 Android", weight(&android::link::for_arm64()?)?)?,
    }
    Ok(())
}

fn check(place: &str, size: u64) -> Result<()> {
    println!(
        "{:<20} {:>6} KiB   of {} with a standard library built anew, {place}",
        CORE.library,
        kib(size),
        kib(LARGEST_CORE)
    );
    within(&format!("the core for {place}"), size, LARGEST_CORE)
}

fn within(what: &str, size: u64, largest: u64) -> Result<()> {
    ensure!(
        size <= largest,
        "{what} has {} KiB, more than {} KiB",
        kib(size),
        kib(largest)
    );
    Ok(())
}

fn on_x86_64_linux() -> bool {
    cfg!(all(target_os = "linux", target_arch = "x86_64"))
}

/// The library as `cargo xtask bindings` builds it.
fn prebuilt(binding: &Binding) -> Result<u64> {
    stripped(&binding.build()?, binding.library)
}

fn stripped(library: &Path, name: &str) -> Result<u64> {
    let folder = project::target().join("size");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let stripped = folder.join(name);
    strip(library, &stripped)?;
    weight(&stripped)
}

fn weight(library: &Path) -> Result<u64> {
    let metadata = fs::metadata(library).context("the stripped library cannot be read")?;
    Ok(metadata.len())
}

fn kib(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}
