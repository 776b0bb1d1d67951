//! `cargo xtask demo`: the subway ride. All options are the demo's own.

use crate::program::Native;
use anyhow::Result;
use std::ffi::OsString;
use std::process::ExitCode;

pub fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    crate::program::run("demo", Native::ForTests, arguments)
}
