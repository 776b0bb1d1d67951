//! `cargo xtask bench-kotlin`: what the Kotlin side costs. All arguments are the benchmarks' own.

use crate::program::Native;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    crate::program::run("bench", Native::AsInJar, arguments)
}
