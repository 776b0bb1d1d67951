//! `cargo xtask ci`: what `.ci/run` runs: all tests, those on Android's framework among them, and all checks. The last line says how many tests ran.

use crate::steps::Steps;
use crate::{check, java, test};
use anyhow::Result;

pub fn run() -> Result<()> {
    java::maven()?;
    let mut steps = Steps::begin("ci")?;
    // The cheapest first. Whatever fails, the rest is looked at too: the steps remember it.
    check::quick(&mut steps);
    let _ = test::rust(&mut steps);
    let _ = test::kotlin(&mut steps);
    let _ = test::android(&mut steps);
    check::slow(&mut steps);
    steps.end()
}
