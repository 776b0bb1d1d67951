//! `cargo xtask herd`: many clients at one server, simulated. All options are the simulation's own.

use crate::{process, project};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::process::ExitCode;

pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    // Optimised: it draws some ten million waits.
    process::run(process::cargo("build").args([
        "--quiet",
        "--release",
        "--package",
        "comeback-herd",
    ]))?;
    let program = format!("comeback-herd{}", std::env::consts::EXE_SUFFIX);
    let status = std::process::Command::new(project::target().join("release").join(program))
        .args(arguments)
        .status()
        .context("the simulation could not be started")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
