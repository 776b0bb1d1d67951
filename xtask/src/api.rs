//! `cargo xtask api`: writes the dumps of the Kotlin modules' public API, which the Maven build compares with.

use crate::{java, process};
use anyhow::Result;

pub fn run() -> Result<()> {
    let mut maven = java::maven()?;
    process::run(process::xtask().args(["bindings", "tests"]))?;
    maven.args([
        "--quiet",
        "--no-transfer-progress",
        "test",
        "--projects",
        "comeback-checks",
        "--also-make",
        "-Dtest=PublicApiTest",
        "-Dsurefire.failIfNoSpecifiedTests=false",
        "-Dcomeback.api.write",
    ]);
    process::run(&mut maven)?;
    println!("Written: the modules' api/*.api. What changed, `git diff` shows.");
    Ok(())
}
