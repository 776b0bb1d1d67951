//! `cargo xtask arena`: Comeback and its peers over the same modelled link. All options are the arena's own.

use crate::program::Native;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    crate::program::run("arena", Native::AsInJar, arguments)
}
