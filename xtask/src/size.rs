//! `cargo xtask size`: what the native libraries weigh in an app, stripped. The core's weight is checked.

use crate::bindings::{Binding, CLIENT, CORE, strip};
use crate::project;
use anyhow::{Context, Result, bail};
use std::fs;

/// What the core may weigh, checked on x86-64 Linux. It is near 510 KiB now, of which 170 KiB are the standard library's own code that names the
/// frames of a panic: it is prebuilt, and only a standard library built anew can leave it out. A jump means that optimisation was lost on the
/// way, or that something large came in.
const LARGEST_CORE: u64 = 540 * 1024;

pub fn run() -> Result<()> {
    for (binding, who) in [
        (CORE, "every app"),
        (CLIENT, "an app that uses comeback-client, beside the core"),
    ] {
        let size = stripped(&binding)?;
        println!("{:<20} {:>6} KiB   {who}", binding.library, kib(size));
    }
    core_is_small()
}

/// Whether the core is still small enough for every app.
pub fn core_is_small() -> Result<()> {
    let size = stripped(&CORE)?;
    let checked = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if checked && size > LARGEST_CORE {
        bail!(
            "the core's library has {} KiB, more than {} KiB",
            kib(size),
            kib(LARGEST_CORE)
        );
    }
    Ok(())
}

fn stripped(binding: &Binding) -> Result<u64> {
    let library = binding.build()?;
    let folder = project::target().join("size");
    fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let stripped = folder.join(binding.library);
    strip(&library, &stripped)?;
    let metadata = fs::metadata(&stripped).context("the stripped library cannot be read")?;
    Ok(metadata.len())
}

fn kib(bytes: u64) -> u64 {
    bytes.div_ceil(1024)
}
